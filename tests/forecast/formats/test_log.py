from pathlib import Path

import pytest

from eigencurve.forecast.formats import log
from eigencurve.forecast.formats.log import Cells, decode, listed, refuse_log, require_few_rows, whole_step

PATH = Path("run.csv")


@pytest.mark.parametrize(("value", "step"), [("100", 100), (" 100.0 ", 100), (7, 7), (7.0, 7), ("1e3", 1000), (-2, -2)])
def test_whole_steps(value, step):
    assert whole_step(PATH, "line 2", value) == step


@pytest.mark.parametrize("value", ["", "1.5", "nan", "inf", "1e300", "a", None, [], 10**400])
def test_other_steps_are_refused(value):
    with pytest.raises(ValueError, match=r"^load_run: run.csv: the step of line 2 must be a whole number, got '"):
        whole_step(PATH, "line 2", value)


def test_errors_are_one_line():
    with pytest.raises(ValueError, match=r"^load_run: run.csv: two lines. Do that.$"):
        refuse_log(PATH, "two\n  lines", "Do that.")


def test_names_are_listed_up_to_a_dozen():
    assert listed([]) == "none"
    assert listed(range(14)).endswith("'11' and 2 more")
    assert len(listed(["x" * 1000])) == 82


def test_text_is_utf8_with_or_without_a_mark():
    assert decode(PATH, b"\xef\xbb\xbfstep") == decode(PATH, b"step") == "step"
    with pytest.raises(ValueError, match=r"byte 2 is not UTF-8 text. A log is a CSV, JSON or TensorBoard file"):
        decode(PATH, b"ab\xff")


def test_too_many_rows(monkeypatch):
    monkeypatch.setattr(log, "MAX_ROWS", 5)
    require_few_rows(PATH, 5)
    with pytest.raises(ValueError, match=r"more than 5 rows. Keep every hundredth row"):
        require_few_rows(PATH, 6)


def test_cells_become_a_column():
    cells = Cells()
    cells.add(3, 0.5, 9)
    column = cells.column()
    assert (column.steps.tolist(), column.values.tolist(), column.rows.tolist()) == ([3], [0.5], [9])
