import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_training.py"


def test_the_example_runs_and_learns(capsys):
    names = runpy.run_path(str(EXAMPLE))
    assert names["loss"].item() < 0.5
    assert "share per octave" in capsys.readouterr().out
