import dataclasses

import numpy as np
import pytest

from eigencurve.forecast import LoggedRun, Prediction
from paper.forecasts import failures
from paper.forecasts.splits import Outcome, Scored, Split

STEPS = np.arange(1, 9)


def scored(name, true, predicted, half=0.01):
    loss = np.linspace(4, predicted, 8)
    run = LoggedRun(STEPS, np.linspace(4, true, 8), np.full(8, 0.1))
    return Scored(name, run, Prediction(STEPS, loss, loss - half, loss + half, ()))


def outcome(*runs, name="GPT 25M", transfer=False):
    return Outcome(Split(name, name, {}, {}, transfer, shaped=True), None, runs)


def test_a_missed_aim_is_stated_and_a_reached_one_is_not():
    missed = failures._missed([outcome(scored("a", 3.0, 3.02))])
    assert missed == ["GPT 25M misses its aim: curves 0.0100 instead of 0.0030."]
    assert failures._missed([outcome(scored("a", 3.0, 3.001))]) == []
    ends = failures._missed([outcome(scored("a", 3.0, 3.02), name="Llama 124M, peak 0.001")])
    assert ends == ["Llama 124M, peak 0.001 misses its aim: ends 0.0200 instead of 0.0050."]


@pytest.mark.parametrize(("error", "width"), [(0.02, "too narrow"), (0.0, "too wide")])
def test_intervals_that_are_off_are_stated(error, width):
    runs = [scored(str(i), 3 + 0.1 * i, 3 + 0.1 * i + error) for i in range(5)]
    assert width in failures._uneven([outcome(*runs)])[0]


def test_fair_intervals_are_not_criticised():
    runs = [scored(str(i), 3.1 + 0.1 * i, 3.1 + 0.1 * i) for i in range(4)]
    sentences = failures._uneven([outcome(*runs, scored("off", 3.0, 3.02))])
    assert len(sentences) == 1
    assert sentences[0].startswith("Single curves differ: in 1 of 5")


def test_a_wrong_order_is_stated():
    runs = [scored("a", 3.00, 3.03), scored("b", 3.01, 3.02), scored("c", 3.02, 3.01)]
    (sentence,) = failures._disorder([outcome(*runs)])
    assert "correlate by only -1.00" in sentence
    assert "c, is in truth number 3 of 3" in sentence
    assert failures._disorder([outcome(*(dataclasses.replace(one, prediction=runs[2 - i].prediction)
                                       for i, one in enumerate(runs)))]) == []  # fmt: skip


def test_the_largest_errors_are_listed():
    sentence = failures._worst([outcome(scored("a", 3.0, 3.001), scored("b", 3.0, 2.95))])
    assert "b of GPT 25M -0.0500 (outside its interval); a of GPT 25M +0.0010." in sentence
