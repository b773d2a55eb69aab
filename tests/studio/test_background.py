import threading
import time

import pytest

import eigencurve as ec
from eigencurve.studio import background
from eigencurve.studio.background import Searches
from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.optimal import search

S = ec.PowerLaw(1.5, 1e-2, 1.0).spectrum(20)


def problem(noise=1.0):
    return ec.NoisyQuadratic(S, noise, 1.0)


def answer_of(searches, *question):
    """Ask until there is an answer; the last resort is generous, for a busy machine."""
    end = time.monotonic() + 120
    while (answer := searches.ask(*question)) is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    return answer


def test_the_answer_is_the_searchs():
    found = answer_of(Searches(), problem(), 2.0, 50)
    assert found.schedule == search(BlockEvaluator(problem().nodes), S, 50, 2.0).schedule


def test_a_question_is_searched_for_once(monkeypatch):
    asked = []
    monkeypatch.setattr(background, "search", lambda *question: asked.append(question) or "found")
    searches = Searches()
    assert [answer_of(searches, problem(), 2.0, 50) for _ in range(3)] == ["found"] * 3
    assert len(asked) == 1


def test_asking_does_not_wait_and_waiting_questions_are_dropped(monkeypatch):
    gate, begun, asked = threading.Event(), threading.Event(), []

    def slow(_evaluator, _spectrum, total_steps, _max_lr):
        asked.append(total_steps)
        begun.set()
        assert gate.wait(120)
        return total_steps

    monkeypatch.setattr(background, "search", slow)
    searches = Searches()
    assert searches.ask(problem(), 2.0, 1) is None
    assert begun.wait(120)
    for total_steps in range(2, 8):
        assert searches.ask(problem(), 2.0, total_steps) is None
    assert len(searches) == 2
    gate.set()
    assert answer_of(searches, problem(), 2.0, 7) == 7
    assert asked == [1, 7]


def test_only_the_last_answers_are_kept(monkeypatch):
    monkeypatch.setattr(background, "search", lambda *question: question[2])
    searches = Searches(most=3)
    for total_steps in range(1, 8):
        assert answer_of(searches, problem(), 2.0, total_steps) == total_steps
    assert len(searches) == 3


def test_an_error_reaches_the_one_who_asks(monkeypatch):
    def fail(*_question):
        raise ArithmeticError("no luck")

    monkeypatch.setattr(background, "search", fail)
    with pytest.raises(ArithmeticError, match="no luck"):
        answer_of(Searches(), problem(), 2.0, 1)
