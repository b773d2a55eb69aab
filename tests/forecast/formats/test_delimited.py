from pathlib import Path

import pytest

from eigencurve.forecast.formats.delimited import read_delimited

PATH = Path("run.csv")
WANDB = (
    '"Step","a - train/loss","a - train/loss__MIN","a - train/loss__MAX","b - train/loss","b - train/loss__MIN",'
    '"b - train/loss__MAX"\n"0","3.5","3.4","3.6","4.5","4.5","4.5"\n"10","3.25","3.25","3.25","",""\n,\n'
)


def everything(_name):
    return True


def read(text, **options):
    found = read_delimited(PATH, text, everything, **options)
    return {name: (column.steps.tolist(), column.values.tolist()) for name, column in found.columns.items()}


@pytest.mark.parametrize("separator", [",", ";", "\t", " , "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_separators_and_line_ends(separator, end):
    text = end.join(
        separator.join(row) for row in [("step", "lr", "loss"), ("0", "0.1", "3"), ("10", "1e-3", "2.5"), ()]
    )
    assert read(text) == {"lr": ([0, 10], [0.1, 1e-3]), "loss": ([0, 10], [3.0, 2.5])}


def test_blank_cells_belong_to_no_column():
    text = "epoch,lr-SGD,step,train_loss\n,0.1,0,\n0,,4,3.5\n,0.05,5,\n0,,9,3.25\n"
    found = read(text)
    assert found["lr-SGD"] == ([0, 5], [0.1, 0.05])
    assert found["train_loss"] == ([4, 9], [3.5, 3.25])


def test_lines_are_numbered_as_in_an_editor():
    found = read_delimited(PATH, "step,loss\n\n0,3\n1,2\n", everything)
    assert found.columns["loss"].rows.tolist() == [3, 4]
    assert found.row == "line"


def test_only_columns_that_are_asked_for_must_be_numbers():
    found = read_delimited(PATH, "step,note,loss\n0,start,3\n", lambda name: name == "loss")
    assert list(found.names) == ["step", "note", "loss"]
    assert list(found.columns) == ["loss"]
    with pytest.raises(ValueError, match="line 2, 'note': 'start' is not a number"):
        read("step,note,loss\n0,start,3\n")


def test_infinity_and_nan_are_read():
    assert str(read("step,loss\n0,NaN\n1,-Infinity\n")["loss"]) == "([0, 1], [nan, -inf])"


def test_one_run_of_an_export():
    text = WANDB.replace('"3.25","",""', '"3.25","","",""').replace(",\n", "")
    assert read(text, run="a") == {"train/loss": ([0, 10], [3.5, 3.25])}
    found = read_delimited(PATH, text, everything, run="b")
    assert (found.run, found.columns["train/loss"].values.tolist()) == ("b", [4.5])


def test_an_export_may_have_its_own_steps():
    """The layout with another x axis: the step of each run is a column, and the epoch is the first one."""
    text = '"epoch","a - _step","a - _step__MIN","a - _step__MAX","a - loss"\n0.1,5,5,5,3.5\n0.2,9,9,9,3.25\n'
    assert read(text)["loss"] == ([5, 9], [3.5, 3.25])


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (WANDB, r"the file holds 2 runs: 'a', 'b'. "),
        ("epoch,loss\n1,2\n", r"no column of steps; the columns are 'epoch', 'loss'"),
        ("0,0.1,3\n1,0.1,2\n", r"the first line holds numbers, '0', '0.1', '3'"),
        ("step,loss,loss\n1,2,3\n", r"the header repeats 'loss'"),
        ("step,loss\n1,2\nstep,loss\n1,2\n", r"line 3 repeats the header"),
        ("step,lr,loss\n1,0.1,2\n2,0.1\n", r"line 3 has 2 cells, but the header has 3"),
        ("step,loss\n1,2,3\n", r"line 2 has 3 cells, but the header has 2"),
        ("step;loss\n1;2,5\n", r"line 2, 'loss': '2,5' is not a number. Write decimals with a point"),
        ("step,loss\n1.5,2\n", r"the step of line 2 must be a whole number, got '1.5'"),
        ("step,loss\n,2\n", r"the step of line 2 must be a whole number, got ''"),
        ("step,loss\n1," + "x" * 200_000 + "\n", r"is not CSV: field larger than field limit"),
        (",,\n", "the file is empty"),
        ("", "the file is empty"),
    ],
)
def test_a_bad_file_is_one_clear_line(text, match):
    with pytest.raises(ValueError, match=match) as caught:
        read(text)
    assert str(caught.value).startswith("load_run: run.csv: ")
    assert "\n" not in str(caught.value)


def test_a_run_that_is_not_there():
    with pytest.raises(ValueError, match=r"no run 'c'; the runs are 'a', 'b'"):
        read(WANDB, run="c")
    with pytest.raises(ValueError, match=r"no run 'c'; the runs are none"):
        read("step,loss\n1,2\n", run="c")


def test_a_resumed_run_may_repeat_its_header():
    assert read("step,loss\n1,2\nstep,loss\n1,2.5\n", resumed=True) == {"loss": ([1, 1], [2.0, 2.5])}
