import json
import re

import pytest
from tests.paper.running import run

from paper.engine.request import Request
from paper.forecasts import report
from paper.forecasts.report import text, values
from paper.forecasts.splits import score


def test_the_tables_state_the_scores(found):
    page = text(found)
    for outcome in found.outcomes:
        whole = score(outcome.runs)
        row = next(line for line in page.splitlines() if line.startswith(f"| {outcome.split.name} | {whole.count} |"))
        assert f"| {whole.curve_error:.4f} |" in row
        assert f"| {whole.ends_inside} of {whole.count} |" in row
        for one in outcome.runs:
            assert f"| {one.true:.4f} | {one.predicted:.4f} |" in page
    assert "did not shape the constants, at a logged peak rate | 7 |" in page


def test_every_held_out_run_has_its_row(found):
    page = text(found)
    rows = re.findall(r"^\| \S+ \| [\d,]+ \| \d\.\d{4} \| \d\.\d{4} \|", page, flags=re.MULTILINE)
    assert len(rows) == 6 + 6 + 7 + 7 + 10 + 10
    assert page.count("outside the logged") == 20
    for heading in ("Where it fails", "What was tuned", "Longer runs", "Fewer runs", "The best schedule"):
        assert f"## {heading}\n" in page


def test_the_best_schedule_and_its_gains_are_stated(found):
    page = text(found)
    for one in found.improvements:
        assert f"| {one.split.model} | **best** | {one.best.loss:.4f} |" in page
        assert f"over WSD {one.others[-1].gain:.4f} (" in page


def test_the_values_are_those_of_the_study(found):
    plain = json.loads(json.dumps(values(found), allow_nan=False))
    split = plain["splits"][0]
    assert split["final_error"] == score(found.outcomes[0].runs).final_error
    assert [run["true"] for run in split["runs"]] == [one.true for one in found.outcomes[0].runs]
    assert [len(split["runs"]) for split in plain["splits"]] == [6, 6, 7, 7, 10, 10]
    assert plain["best"][0]["loss"] == found.improvements[0].best.loss
    assert plain["best"][0]["others"][0]["gain"] == found.improvements[0].cosine.gain


def test_a_study_covers_every_split(found, splits):
    assert [outcome.split.name for outcome in found.outcomes] == [split.name for split in splits]
    models = [split.name for split in splits if not split.transfer]
    assert list(found.fewer) == list(found.exponents) == models
    assert [one.split.name for one in found.improvements] == models
    for outcome in found.outcomes[:4]:
        # All runs, in another order.
        whole = found.fewer[outcome.split.name]["constant", "cosine", "decay"]
        assert whole.final_error == pytest.approx(score(outcome.runs).final_error, rel=0.05)
        assert tuple(found.exponents[outcome.split.name]) == report.EXPONENTS


def test_progress_is_shown(curves, splits, monkeypatch, terminal):
    monkeypatch.setattr(report, "splits_of", lambda _: splits[4:5])
    assert report.measure(curves, progress=True).improvements == ()
    assert "1/1" in terminal()


def test_every_figure_is_on_the_page(found, monkeypatch):
    monkeypatch.setattr(report, "measure", lambda *_: found)
    page = report.make(Request())
    pictures = re.findall(r"\]\((.*?\.png)\)", page.body)
    assert len(pictures) == 7
    assert sorted(pictures) == sorted(page.figures)
    assert page.name == "forecast"


@pytest.mark.parametrize(
    ("words", "code", "message"), [((), 2, "holds curves/index.json"), (("--data", "."), 1, "index.json is missing")]
)
def test_missing_logs_are_one_line(tmp_path, monkeypatch, words, code, message):
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    result = run("forecast", *words)
    assert result.exit_code == code
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert message in line
