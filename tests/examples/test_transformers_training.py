import runpy
from pathlib import Path

import pytest

pytest.importorskip("transformers")

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "transformers_training.py"


def test_the_example_runs_and_learns(capsys):
    names = runpy.run_path(str(EXAMPLE))
    history = names["trainer"].state.log_history
    schedule = names["callback"].scheduler.schedule
    logged = [(row["step"], row["learning_rate"]) for row in history if "learning_rate" in row]
    assert logged == [(step, schedule(step - 1)) for step in range(8, 81, 8)]
    losses = [row["loss"] for row in history if "loss" in row]
    assert losses[-1] < losses[0] / 2
    assert "share per octave" in capsys.readouterr().out
