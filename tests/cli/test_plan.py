import json

import numpy as np
import pytest
from tests.cli.running import run
from tests.reference.forecast import three_runs

import eigencurve as ec


@pytest.fixture
def logs(here):
    for run_ in three_runs():
        rates = run_.rates[np.minimum(run_.steps, run_.total_steps - 1)]
        pairs = zip(run_.steps.tolist(), rates.tolist(), run_.losses.tolist(), strict=True)
        rows = [f"{step},{rate!r},{loss!r}" for step, rate, loss in pairs]
        (here / f"{run_.name}.csv").write_text("\n".join(["step,lr,loss", *rows]) + "\n")
    return [f"{run_.name}.csv" for run_ in three_runs()]


def test_nothing_but_the_steps_and_the_optimizer(here):
    found = run("plan", "--steps", "50000", "--optimizer", "adamw", "-o", "schedule.json")
    assert found.stdout.startswith("Decay to zero, late: hold the rate for 61 % of the run")
    schedule = ec.schedule_from_dict(json.loads((here / "schedule.json").read_text()))
    assert schedule == ec.plan(total_steps=50_000, optimizer="adamw").schedule


def test_logs(logs):
    found = json.loads(run("plan", *logs, "--steps", "2000", "--optimizer", "adamw", "--json").stdout)
    assert found["name"] in {row["name"] for row in found["table"]}
    assert {
        "name": "curvature, noise and start",
        "value": "3 logged runs (loss)",
        "source": "fitted",
        "effect": "",
    } in found["inputs"]


def trainer_state(run_, last):
    """What transformers writes: the rate of the last update, a training loss, and at times that of the evaluation."""
    pairs = [(int(step), float(loss)) for step, loss in zip(run_.steps, run_.losses, strict=True) if step <= last]
    history = [{"step": step, "learning_rate": float(run_.rates[step - 1]), "loss": loss + 0.1} for step, loss in pairs]
    history += [{"step": step, "eval_loss": loss} for step, loss in pairs[::2]]
    return json.dumps({"best_metric": None, "log_history": sorted(history, key=lambda entry: entry["step"])}, indent=2)


def test_a_log_is_known_by_its_content(here, logs):
    (here / "trainer_state_a.json").write_text(trainer_state(three_runs()[0], 2000))
    found = json.loads(
        run("plan", "trainer_state_a.json", logs[1], "--loss", "loss", "--steps", "2000", "--json").stdout
    )
    assert {
        "name": "curvature, noise and start",
        "value": "2 logged runs (loss)",
        "source": "fitted",
        "effect": "",
    } in (found["inputs"])


def test_the_output_folder_of_transformers_and_the_loss_of_its_evaluation(here):
    for last in (1000, 2000):
        folder = here / "out" / f"checkpoint-{last}"
        folder.mkdir(parents=True)
        (folder / "trainer_state.json").write_text(trainer_state(three_runs()[1], last))
    assert "1 logged run (eval_loss)" in run("plan", "out", "--steps", "2000").stdout
    assert "out: 50 losses (eval_loss) to step 1,980" in run("fit", "out").stdout


def test_a_spectrum_and_the_code_for_it():
    found = run("plan", "resnet20_cifar10", "--steps", "500", "--code", "torch")
    assert "torch.optim.SGD(" in found.stdout
    assert "ScheduleLR" in found.stdout
