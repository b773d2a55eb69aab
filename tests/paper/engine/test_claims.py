import numpy as np
import pytest

from paper.engine.claims import (
    best_sentence,
    paper_sentence,
    ranked,
    standard_errors,
)
from paper.engine.protocol import Trials


def trials(**values):
    return {name: Trials({}, tuple(numbers), 0 if numbers else 2) for name, numbers in values.items()}


def test_standard_errors():
    first, second = Trials({}, (1.0, 3.0), 0), Trials({}, (5.0, 9.0), 0)
    assert standard_errors(first, second) == pytest.approx(5 / np.sqrt(2 / 2 + 8 / 2))
    assert standard_errors(second, first) == standard_errors(first, second)


def test_schedules_without_a_mean_are_not_ranked():
    found = trials(a=(2.0,), b=(), c=(1.0,))
    assert ranked(found, minimise=True) == ["c", "a"]
    assert ranked(found, minimise=False) == ["a", "c"]


def test_the_best_and_those_close_to_it():
    found = trials(a=(50.0, 52.0), b=(50.5, 51.0), c=(10.0, 11.0))
    expected = "Best accuracy: a (51.000000 ± 1.414214). Within two standard errors: b."
    assert best_sentence("accuracy", found, minimise=False) == expected
    lone = best_sentence("loss", found, minimise=True, number=lambda t: t.text(1))
    assert lone == "Best loss: c (10.5 ± 0.7). No other is within two standard errors."
    assert best_sentence("loss", trials(a=()), minimise=True) == "Best loss: none, every trial diverged."


def test_the_papers_best():
    published = {"a": "*70.00 ± 1.00", "b": "80.00 ± 2.00", "d": "99", "c": "–"}
    same = paper_sentence(trials(a=(50.0, 51.0), b=(60.0, 61.0)), published, minimise=False)
    assert same == "Of the 2 schedules that are also in the paper, b is best there and here."
    other = paper_sentence(trials(a=(60.0, 61.0), b=(50.0, 51.0), c=(1.0,)), published, minimise=False)
    assert other.endswith("b is best there but number 2 here, 14.1 standard errors behind a.")
    gone = paper_sentence(trials(a=(60.0, 61.0), b=()), published, minimise=False)
    assert gone.endswith("b is best there and diverged in every trial here.")
    assert paper_sentence(trials(a=(1.0,)), published, minimise=False) == ""
