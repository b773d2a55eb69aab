import json
import subprocess
import sys

import pytest
from tests.cli.running import invoke

from eigencurve.demo import run

pytestmark = pytest.mark.slow


class Result:
    """A finished demo."""

    def __str__(self):
        return "It was beaten."

    def to_dict(self):
        return {"race": []}

    def to_html(self):
        return "<html></html>"


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(run, "run_demo", lambda **_: Result())


@pytest.mark.usefixtures("quick")
def test_the_summary_is_printed_and_the_page_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("demo", "-o", "demo.html")
    assert (result.exit_code, result.stdout) == (0, "It was beaten.\n")
    assert "wrote demo.html" in result.stderr
    assert (tmp_path / "demo.html").read_text() == "<html></html>"
    assert json.loads(invoke("demo", "--json").stdout) == {"race": []}
    again = invoke("demo", "-o", "demo.html")
    assert again.exit_code == 2
    assert "already exists" in again.stderr


@pytest.mark.parametrize("missing", ["torch", "sklearn"])
def test_a_missing_package_is_one_line_that_says_what_to_install(missing):
    program = f"import sys; sys.modules[{missing!r}] = None; from eigencurve.cli import app; app(['demo'])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line == f"error: demo: {missing} is not installed. Run: pip install 'eigencurve[demo]'"
