import pytest
from tests.planning.logged import CONSTANT, COSINE, log_text

from eigencurve.planning.forecasts import LogSettings
from eigencurve.studio import logs
from eigencurve.studio.logs import read_logs


def content(schedule, skip=0):
    head, *rows = log_text(schedule).splitlines()
    return ("\n".join([head, *rows[skip:]]) + "\n").encode()


def test_files_of_the_same_name_are_two_runs():
    loaded = read_logs([("run.csv", content(CONSTANT)), ("C:\\logs\\run.csv", content(COSINE))], LogSettings())
    assert [run.name for run in loaded.runs] == ["run", "run (2)"]
    assert loaded.runs[0].rates[-1] > loaded.runs[1].rates[-1]
    assert loaded.warnings == ()


def test_messages_have_the_names_of_the_files_and_of_the_widgets():
    (warning,) = read_logs([("late.csv", content(COSINE, skip=10))], LogSettings()).warnings
    assert warning.startswith("late.csv: no learning rate is logged before step 200")
    assert "“Warmup steps”" in warning
    with pytest.raises(ValueError, match=r"^bad.csv: .*“Loss column”"):
        read_logs([("bad.csv", content(COSINE))], LogSettings(loss="no such loss"))
    with pytest.raises(ValueError, match=r"^empty.csv: the file is empty"):
        read_logs([("../../empty.csv", b"")], LogSettings())


def test_number_and_size_are_limited(monkeypatch):
    monkeypatch.setattr(logs, "MOST_MEGABYTES", 0)
    with pytest.raises(ValueError, match=r"at most 0 MB, got '0.0 MB \(a.csv\)'"):
        read_logs([("a.csv", b"step,lr,loss\n")], LogSettings())
    with pytest.raises(ValueError, match="'files' must be at most 8, got 9"):
        read_logs([("a.csv", b"")] * 9, LogSettings())
