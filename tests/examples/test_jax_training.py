import runpy
from pathlib import Path

import pytest

pytest.importorskip("optax")

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "jax_training.py"


def test_the_example_runs_and_learns(capsys):
    names = runpy.run_path(str(EXAMPLE))
    assert float(names["loss"]) < 0.5
    assert "share per octave" in capsys.readouterr().out
