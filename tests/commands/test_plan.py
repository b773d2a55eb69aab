import json

import numpy as np
import pytest
from tests.commands.running import run
from tests.reference.forecast import three_runs
from typer.testing import CliRunner

import eigencurve as ec
from eigencurve.cli import app


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
    assert {"name": "curvature, noise and start", "value": "3 logged runs", "source": "fitted", "effect": ""} in found[
        "inputs"
    ]


def test_a_spectrum_and_the_code_for_it():
    found = run("plan", "resnet20_cifar10", "--steps", "500", "--code", "torch")
    assert "torch.optim.SGD(" in found.stdout
    assert "ScheduleLR" in found.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--optimizer", "adamw"), "--steps"),
        (("--steps", "100", "--optimizer", "lion"), "--optimizer must be one of"),
        (("missing.csv", "--steps", "100"), "missing.csv"),
        (("--steps", "100", "--json", "--code", "torch"), "Pass only one of --json and --code."),
        (("resnet20_cifar10", "--steps", "100", "--optimizer", "adamw"), "plain Hessian"),
    ],
)
def test_bad_requests_get_one_line(words, message):
    found = CliRunner().invoke(app, ["plan", *words])
    assert found.exit_code in (1, 2)
    assert message in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
