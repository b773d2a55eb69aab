import subprocess
import sys

import pytest

import eigencurve as ec

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.figures.canvas import figure_bytes
from eigencurve.figures.schedules import schedule_figure

HEADS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", HEADS)
def test_the_same_figure_gives_the_same_bytes(suffix):
    first, second = (figure_bytes(schedule_figure(ec.cosine(9, 0.1)), suffix) for _ in range(2))
    assert first == second
    assert first.startswith(HEADS[suffix])


def test_another_ending_is_refused():
    with pytest.raises(ValueError, match=r"figure_bytes: 'suffix' must be one of '\.png', .* got '\.gif'"):
        figure_bytes(schedule_figure(ec.cosine(9, 0.1)), ".gif")


def test_without_matplotlib_the_extra_is_named():
    code = "import sys; sys.modules['matplotlib'] = None; import eigencurve.figures.canvas"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install eigencurve[plot]" in result.stderr
