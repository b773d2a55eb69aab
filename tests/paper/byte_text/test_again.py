"""The second test of a forecast through the command line, on small texts."""

import pytest
from tests.paper.byte_text.texts import write_texts
from tests.paper.images.pages import run

from eigencurve.forecast import fit_runs
from eigencurve.runs.store import Store
from paper.byte_text import again
from paper.byte_text.again import checked_again, read_logs, subsets_table
from paper.byte_text.predictions import committed_predictions

# The small runs log their rate at every second step, which load_run finds too rare.
pytestmark = pytest.mark.filterwarnings("ignore::eigencurve.ArgumentWarning")


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """The logs of the first part of the first test."""
    folder = write_texts(tmp_path_factory.mktemp("first"))
    store = ("--store", str(folder / "s.sqlite"), "--output", str(folder))
    assert run("bytes", "--data", str(folder), "--part", "first", *store).exit_code == 0
    return folder / "bytes_curves"


def test_logs_are_averaged_over_the_seeds(logs):
    found = read_logs(logs)
    assert len(found) == 7 * 2
    one = found["linear", 0.01]
    lines = [(logs / f"linear_lr0.01_seed{seed}.csv").read_text().splitlines()[-1] for seed in (0, 1)]
    assert one.losses[-1] == pytest.approx(sum(float(line.split(",")[2]) for line in lines) / 2)
    assert one.name == "linear, lr 0.01"


def test_logs_of_held_back_runs_are_checked_afterwards(logs, tmp_path):
    for path in logs.glob("linear*.csv"):
        (tmp_path / path.name.replace("linear", "elastic-step")).write_bytes(path.read_bytes())
    (found, *_) = checked_again(read_logs(tmp_path), fit_runs(list(read_logs(logs).values())))
    assert (found.schedule, found.rate) == ("Elastic Step", 0.001)
    assert found.outcome == read_logs(logs)["linear", 0.001].losses[-1]


def test_some_of_the_logs_predict_the_others(logs):
    lines = subsets_table(read_logs(logs)).splitlines()
    assert lines[0] == "| fitted | lr 0.001 | lr 0.01 |"
    assert lines[2].startswith("| constant | ")
    assert lines[2].endswith(" of 6 |")  # the other six schedules
    assert len(lines) == 2 + 7


@pytest.mark.parametrize("words", [(), ("--data", "nowhere")])
def test_logs_are_required(tmp_path, words):
    result = run("bytes-again", "--store", str(tmp_path / "s.sqlite"), *words)
    assert result.exit_code == 2
    assert "Pass --data with the logs of `python -m paper bytes`" in result.stderr


def test_predictions_come_before_the_runs(logs, tmp_path, monkeypatch):
    monkeypatch.setenv("EIGENCURVE_DATA", str(tmp_path))
    (tmp_path / "ptb").mkdir()
    write_texts(tmp_path / "ptb")
    words = ("--data", str(logs), "--store", str(tmp_path / "s.sqlite"), "--output", str(tmp_path))
    first = run("bytes-again", *words)
    assert first.exit_code == 0, first.output
    assert "No predictions are committed yet." in first.stdout
    assert not Store(tmp_path / "s.sqlite").experiments()
    monkeypatch.setattr(again, "FILE", tmp_path / "bytes_again.json")
    assert len(committed_predictions("smoke", again.FILE).losses) == 4
    unfinished = run("bytes-again", *words, "--part", "finished")
    assert "**Not finished:** REX (4 runs);" in unfinished.stdout
    second = run("bytes-again", *words)
    assert second.exit_code == 0, second.output
    assert "Mean absolute error over 8 schedules and rates" in second.stdout
    assert "Not finished" not in second.stdout
