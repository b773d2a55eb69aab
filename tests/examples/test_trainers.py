import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.filterwarnings("ignore")  # the frameworks' own, on workers and the like
def test_lightning(capsys):
    pytest.importorskip("lightning")
    names = runpy.run_path(str(EXAMPLES / "lightning_training.py"))
    steps = names["callback"].scheduler.schedule.total_steps
    assert names["trainer"].global_step == steps == 160
    assert names["loss"](names["module"], names["data"].tensors).item() < 0.5
    assert "share per octave" in capsys.readouterr().out


def test_transformers(capsys):
    pytest.importorskip("transformers")
    names = runpy.run_path(str(EXAMPLES / "transformers_training.py"))
    history = names["trainer"].state.log_history
    schedule = names["callback"].scheduler.schedule
    logged = [(row["step"], row["learning_rate"]) for row in history if "learning_rate" in row]
    assert logged == [(step, schedule(step - 1)) for step in range(8, 81, 8)]
    losses = [row["loss"] for row in history if "loss" in row]
    assert losses[-1] < losses[0] / 2
    assert "share per octave" in capsys.readouterr().out


def test_accelerate(capsys):
    pytest.importorskip("accelerate")
    names = runpy.run_path(str(EXAMPLES / "accelerate_training.py"))
    assert names["scheduler"].scheduler.last_epoch == names["schedule"].total_steps == 160
    assert names["loss"].item() < 0.5
    assert "share per octave" in capsys.readouterr().out
