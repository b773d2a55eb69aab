"""The transformer's table through the command line, on small texts."""

import json

import pytest
from tests.experiments.bytes.texts import write_texts
from tests.experiments.images.pages import run

from eigencurve.experiments.bytes.scales import REST, shapes
from eigencurve.runs.store import Store


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_texts(tmp_path_factory.mktemp("texts"))


def made(folder, *words):
    result = run("bytes", "--data", str(folder), "--store", str(folder / "s.sqlite"), *words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_first_part_leaves_the_rest_alone(folder):
    page = made(folder, "--part", "first", "--output", str(folder / "out"))
    for name in shapes(REST, ""):
        assert f"{name} (4 runs)" in page
    (name,) = Store(folder / "s.sqlite").experiments()
    rows = Store(folder / "s.sqlite").rows(name)
    assert len(rows) == 7 * 2 * 2 + 1  # and the run whose spectrum is measured
    assert {row["settings"]["schedule"] for row in rows} == {"cosine", "constant", "wsd", "linear"}
    assert len(list((folder / "out" / "bytes_curves").glob("*.csv"))) == 28
    assert "No predictions are committed yet." in page


def test_what_is_finished_needs_no_run(folder, tmp_path):
    made(folder, "--part", "first")
    values = json.loads(made(folder, "--part", "finished", "--json"))
    assert [row["missing"] for row in values["rows"]] == [0] * 7 + [4] * 5
    result = run("bytes", "--data", str(folder), "--store", str(tmp_path / "new.sqlite"), "--part", "finished")
    assert result.exit_code == 0, result.output
    assert "Cosine to 0 (4 runs)" in result.stdout
    assert not Store(tmp_path / "new.sqlite").experiments()


def test_unknown_parts_are_refused(folder):
    result = run("bytes", "--data", str(folder), "--part", "second")
    assert result.exit_code == 2
    assert "--part must be 'first' or 'rest' or 'finished' for bytes, got 'second'" in result.stderr
