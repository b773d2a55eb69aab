import re

import pytest
from tests.paper.running import run

from paper.engine.request import Request
from paper.forecasts import tables


def test_every_figure_is_on_the_page(found, monkeypatch):
    monkeypatch.setattr(tables, "measure", lambda *_: found)
    page = tables.make(Request())
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
