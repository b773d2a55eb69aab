import threading
import time

import pytest

import eigencurve as ec
from eigencurve.studio.background import Answers, best_schedule
from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.optimal import search

S = ec.PowerLaw(1.5, 1e-2, 1.0).spectrum(20)


def problem(noise=1.0):
    return ec.NoisyQuadratic(S, noise, 1.0)


def answer_of(answers, *question):
    """Ask until there is an answer; the last resort is generous, for a busy machine."""
    end = time.monotonic() + 120
    while (answer := answers.ask(*question)) is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    return answer


def test_the_answer_is_the_searchs():
    found = answer_of(Answers(best_schedule), problem(), 2.0, 50)
    assert found.schedule == search(BlockEvaluator(problem().nodes), S, 50, 2.0).schedule


def test_an_equal_question_is_answered_once():
    asked = []
    answers = Answers(lambda *question: asked.append(question) or "found")
    assert [answer_of(answers, problem(), 2.0, 50) for _ in range(3)] == ["found"] * 3
    assert len(asked) == 1


def test_names_are_part_of_the_question():
    answers = Answers(lambda number=0: number + 1)
    assert answer_of(answers, 5) == 6
    end = time.monotonic() + 120
    while answers.ask(number=7) is None:
        assert time.monotonic() < end
    assert answers.ask(number=7) == 8


def test_asking_does_not_wait_and_waiting_questions_are_dropped():
    gate, begun, asked = threading.Event(), threading.Event(), []

    def slow(number):
        asked.append(number)
        begun.set()
        assert gate.wait(120)
        return number

    answers = Answers(slow)
    assert answers.ask(1) is None
    assert begun.wait(120)
    for number in range(2, 8):
        assert answers.ask(number) is None
    assert len(answers) == 2
    gate.set()
    assert answer_of(answers, 7) == 7
    assert asked == [1, 7]


def test_only_the_last_answers_are_kept():
    answers = Answers(lambda number: number, most=3)
    for number in range(1, 8):
        assert answer_of(answers, number) == number
    assert len(answers) == 3


def test_old_answers_are_forgotten(monkeypatch):
    answers = Answers(lambda number: number, seconds=100)
    assert answer_of(answers, 1) == 1
    later = time.monotonic() + 101
    monkeypatch.setattr(time, "monotonic", lambda: later)
    answers.ask(2)
    assert len(answers) == 1


def test_an_error_reaches_the_one_who_asks():
    def fail():
        raise ArithmeticError("no luck")

    with pytest.raises(ArithmeticError, match="no luck"):
        answer_of(Answers(fail))
