"""The transformer's table through the command line, on small texts."""

import json
import shutil

import pytest
from tests.paper.byte_text.texts import write_texts
from tests.paper.images.pages import run

from eigencurve.runs.store import Store
from paper.byte_text import tables
from paper.byte_text.predictions import committed_predictions
from paper.byte_text.scales import REST, shapes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The texts, a store of the first part, and its page in out/."""
    path = write_texts(tmp_path_factory.mktemp("texts"))
    made(path, "--part", "first", "--output", str(path / "out"))
    return path


def made(folder, *words):
    result = run("bytes", "--data", str(folder), "--store", str(folder / "s.sqlite"), *words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_first_part_leaves_the_rest_alone(folder):
    page = (folder / "out" / "bytes.md").read_text()
    for name in shapes(REST, ""):
        assert f"{name} (4 runs)" in page
    (name,) = Store(folder / "s.sqlite").experiments()
    rows = Store(folder / "s.sqlite").rows(name)
    assert len(rows) == 7 * 2 * 2 + 1  # and the run whose spectrum is measured
    assert {row["settings"]["schedule"] for row in rows} == {"cosine", "constant", "wsd", "linear"}
    assert len(list((folder / "out" / "bytes_curves").glob("*.csv"))) == 28
    assert "No predictions are committed yet." in page


def test_what_is_finished_needs_no_run(folder, tmp_path):
    values = json.loads(made(folder, "--part", "finished", "--json"))
    assert [row["missing"] for row in values["rows"]] == [0] * 7 + [4] * 5
    result = run("bytes", "--data", str(folder), "--store", str(tmp_path / "new.sqlite"), "--part", "finished")
    assert result.exit_code == 0, result.output
    assert "Cosine to 0 (4 runs)" in result.stdout
    assert not Store(tmp_path / "new.sqlite").experiments()


def test_predictions_come_before_the_rest(folder, tmp_path, monkeypatch):
    refused = run("bytes", "--data", str(folder), "--store", str(folder / "s.sqlite"), "--part", "rest")
    assert refused.exit_code == 2
    assert "Predictions come first" in refused.stderr
    file = folder / "out" / "bytes_predictions.json"
    monkeypatch.setattr(tables, "committed_predictions", lambda scale: committed_predictions(scale, file))
    copy = shutil.copy(folder / "s.sqlite", tmp_path / "s.sqlite")
    result = run("bytes", "--data", str(folder), "--store", copy, "--part", "rest", "--output", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert "Not finished" not in result.stdout
    assert "Mean absolute error over 12 schedules and rates" in result.stdout
    assert "| Recommendation | rest |" in result.stdout
    assert not (tmp_path / "out" / "bytes_predictions.json").exists()


def test_unknown_parts_are_refused(folder):
    result = run("bytes", "--data", str(folder), "--part", "second")
    assert result.exit_code == 2
    assert "'part' must be 'first' or 'rest' or 'finished' for bytes, got 'second'" in result.stderr
