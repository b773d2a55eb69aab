import runpy
from pathlib import Path

import pytest

pytest.importorskip("accelerate")

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "accelerate_training.py"


def test_the_example_runs_and_learns(capsys):
    names = runpy.run_path(str(EXAMPLE))
    assert names["scheduler"].scheduler.last_epoch == names["schedule"].total_steps == 160
    assert names["loss"].item() < 0.5
    assert "share per octave" in capsys.readouterr().out
