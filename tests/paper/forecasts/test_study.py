import re

import pytest
from tests.paper.running import run

from paper.engine.request import Request
from paper.forecasts import report, study
from paper.forecasts.splits import score


def test_a_study_covers_every_split(found, splits):
    assert [outcome.split.name for outcome in found.outcomes] == [split.name for split in splits]
    models = [split.name for split in splits if not split.transfer]
    assert list(found.fewer) == list(found.exponents) == models
    assert [one.split.name for one in found.improvements] == models
    for outcome in found.outcomes[:4]:
        # All runs, in another order.
        whole = found.fewer[outcome.split.name]["constant", "cosine", "decay"]
        assert whole.final_error == pytest.approx(score(outcome.runs).final_error, rel=0.05)
        assert tuple(found.exponents[outcome.split.name]) == study.EXPONENTS


def test_progress_is_shown(curves, splits, monkeypatch, terminal):
    monkeypatch.setattr(study, "splits_of", lambda _: splits[4:5])
    assert study.measure(curves, progress=True).improvements == ()
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
