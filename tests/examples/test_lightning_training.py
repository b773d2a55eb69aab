import runpy
from pathlib import Path

import pytest

pytest.importorskip("lightning")

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "lightning_training.py"


@pytest.mark.filterwarnings("ignore")  # Lightning warns about workers and the like
def test_the_example_runs_and_learns(capsys):
    names = runpy.run_path(str(EXAMPLE))
    steps = names["callback"].scheduler.schedule.total_steps
    assert names["trainer"].global_step == steps == 160
    assert names["loss"](names["module"], names["data"].tensors).item() < 0.5
    assert "share per octave" in capsys.readouterr().out
