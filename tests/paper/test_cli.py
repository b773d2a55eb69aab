import json
from pathlib import Path

import pytest
from tests.paper.ridge.problems import ROWS
from tests.paper.running import run

from eigencurve.runs.store import Store
from paper.registry import REGISTRY


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "rows").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


ONE = ("ridge", "--data", "rows", "--epochs", "1", "--backend", "sequential", "--workers", "1")


def test_the_list_says_what_each_needs():
    result = run()
    assert result.exit_code == 0
    listed = json.loads(run("--json").stdout)
    assert [e["name"] for e in listed] == list(REGISTRY)
    assert all(e["needs"] and e["shows"] for e in listed)


def test_a_table_is_made_from_the_store_and_again_without_running(here):
    first = run(*ONE, "--json")
    assert first.exit_code == 0, first.output
    found = json.loads(first.stdout)
    assert len(found["tables"]["1"]) == 12
    for row in found["tables"]["1"]:
        assert len(row["fresh"]) + row["fresh_diverged"] == 5
    rows = Store(here / "eigencurve.sqlite").rows(found["experiment"])
    assert run(*ONE, "--json").stdout == first.stdout
    assert Store(here / "eigencurve.sqlite").rows(found["experiment"]) == rows


def test_runs_in_a_text_file_are_not_repeated(here):
    first = run(*ONE, "--runs", "runs.jsonl")
    assert "wrote" in first.stderr
    assert "runs to runs.jsonl" in first.stderr
    content = (here / "runs.jsonl").read_bytes()
    again = run(*ONE, "--runs", "runs.jsonl", "--store", "another.sqlite")
    assert again.exit_code == 0, again.output
    table = "## 1 epoch"
    assert again.stdout[again.stdout.index(table) :].split("Made by")[0] in first.stdout
    assert (here / "runs.jsonl").read_bytes() == content  # the times of the first runs too, so none was repeated


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("ridge", "--data", "rows", "--runs", "rows"), 2, "'runs' must be a file of finished runs, got"),
        (("sledge",), 2, "'name' must be one of ridge, rates"),
        (("ridge", "--backend", "threads"), 2, "argument --backend: invalid choice"),
        (("ridge", "--data", "rows", "--epochs", "0"), 2, "'epochs' must be >= 1"),
        (("ridge", "--data", "missing"), 1, "missing"),
        (("ridge", "--data", "bad"), 2, "line 1: 'x' is not index:value"),
        (("ridge", "--data", "rows", "--store", "rows"), 2, "a store of eigencurve's results"),
        (("--nonsense",), 2, "--nonsense"),
    ],
)
def test_errors_are_one_line(words, code, message, here):
    (here / "bad").write_text("1 x\n")
    result = run(*words)
    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.output
    if "usage" not in result.stderr:
        assert len(result.stderr.strip().splitlines()) == 1
    assert (here / "rows").read_text() == ROWS


def test_a_table_of_the_theory_is_made_and_written(here, monkeypatch):
    """Two random problems instead of thousands: the table is tested elsewhere, here the command."""
    monkeypatch.setattr("paper.theory.tightness.NUM_PROBLEMS", 2, raising=True)
    result = run("tightness", "--output", "out")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("# How tight the paper's bounds are")
    assert (here / "out" / "theory" / "tightness.md").read_text() == result.stdout
    assert f"wrote {Path('out/theory/tightness.md')}" in result.stderr
    assert not (here / "eigencurve.sqlite").exists()
    assert json.loads(run("tightness", "--json").stdout)["table"] == "tightness"
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    missing = run("best")
    assert missing.exit_code == 2
    assert "set EIGENCURVE_DATA" in missing.stderr


def test_debug_shows_the_traceback():
    with pytest.raises(ValueError, match="'name' must be one of"):
        run("sledge", "--debug")
