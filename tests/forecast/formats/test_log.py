import pickle
from pathlib import Path

import pytest

from eigencurve._check import Arg
from eigencurve.forecast.formats import log as module
from eigencurve.forecast.formats.log import Log, LogError, listed


@pytest.fixture
def log():
    return Log(Path("run.csv"), "line", lambda name: name == "loss")


@pytest.mark.parametrize(("step", "whole"), [("100", 100), (" 100.0 ", 100), (7, 7), (7.0, 7), ("1e3", 1000), (-2, -2)])
def test_values_become_columns(log, step, whole):
    log.add(9, step, {"loss": "0.5", "note": "start"})
    column = log.columns["loss"]
    assert (column.steps.tolist(), column.values.tolist(), column.rows.tolist()) == ([whole], [0.5], [9])
    assert list(log.columns) == ["loss"]
    assert list(log.names) == ["loss", "note"]


@pytest.mark.parametrize("step", ["", "1.5", "nan", "inf", "1e300", "a", [], 10**400])
def test_other_steps_are_refused(log, step):
    with pytest.raises(LogError) as error:
        log.add(2, step, {"loss": 1.0})
    assert error.value.constraint.startswith("the step of line 2 must be a whole number, got '")


@pytest.mark.parametrize("value", ["x", "2,5", True, [3], None, 10**400])
def test_other_values_are_refused(log, value):
    with pytest.raises(LogError, match=r"line 2, 'loss': .* is not a number"):
        log.add(2, 0, {"loss": value})


def test_too_many_rows(log, monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 1)
    log.add(1, 0, {"loss": 1.0})
    with pytest.raises(LogError, match=r"more than 1 rows"):
        log.add(2, 1, {"loss": 1.0})


def test_an_error_is_one_line_in_which_a_caller_names_the_arguments(log):
    with pytest.raises(ValueError, match=r"^load_run: run.csv: two lines. Pass 'loss'.$") as caught:
        log.refuse("two\n  lines", "Pass ", Arg("loss"), ".")
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.sentence(lambda name: f"--{name}") == "run.csv: two lines. Pass --loss."
    assert (error.argument, error.value) == ("path", Path("run.csv"))


def test_names_are_listed_up_to_a_dozen():
    assert listed([]) == "none"
    assert listed(range(14)).endswith("'11' and 2 more")
    assert len(listed(["x" * 1000])) == 82
