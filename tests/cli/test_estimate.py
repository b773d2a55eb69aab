"""Measuring from the command line: the file, its error bars, the checkpoint."""

import copy
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.cli.running import invoke, run

import eigencurve as ec
from eigencurve.spectrum.files import load_measurement, load_noise, load_start
from eigencurve.theory.stability import stability_report

pytest.importorskip("torch", reason="PyTorch is not installed")
import torch

from eigencurve.hessian import HessianOperator, estimate_noise, estimate_spectrum, estimate_start

# Most of these runs are too short to settle.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:load_spectrum.*has not settled")]
PROBLEM = """
import os
import time
import torch

def problem():
    source = torch.Generator().manual_seed(1)
    x, y = torch.randn(40, 6, generator=source), torch.randn(40, 1, generator=source)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 1))
    slow = float(os.environ.get("SLOW", "0"))
    def loss_fn(outputs, targets):
        time.sleep(slow)
        return (outputs - targets).square().mean()
    return model, loss_fn, [(x[:20], y[:20]), (x[20:], y[20:])]
"""
WORDS = (
    "estimate",
    "tiny:problem",
    *["--num-products", "60", "--settle", "0", "--weight-decay", "1e-3", "--num-probes", "2"],
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "tiny.py").write_text(PROBLEM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("tiny", None)


@pytest.mark.usefixtures("here")
def test_the_file_holds_the_estimate_and_its_error_bars():
    run(*WORDS, "--seed", "3", "-o", "s.npz")
    import tiny

    expected = estimate_spectrum(
        HessianOperator(*tiny.problem()), 60, num_probes=2, seed=3, settle=None, weight_decay=1e-3, progress=False
    )
    assert ec.load_spectrum("s.npz") == expected.spectrum
    known = load_measurement("s.npz")
    np.testing.assert_array_equal(known.octaves.error, expected.octaves.error)
    np.testing.assert_array_equal(known.alphas[1], expected.alphas[1])
    assert (known.num_products, known.reason) == (expected.num_products, expected.reason)
    assert "torch" in known.made_by
    shown = run("spectrum", "show", "s.npz").stdout
    for share, error in zip(expected.octaves.share, expected.octaves.error, strict=True):
        assert shown.count(f"{share:.3e} +- {error:.1e}") == 1
    facts = json.loads(run("spectrum", "show", "s.npz", "--json").stdout)
    assert facts["weight_decay"] == 1e-3
    assert facts["octaves"]["error"] == expected.octaves.error.tolist()


@pytest.mark.usefixtures("here")
def test_other_operators_and_formats():
    run(*WORDS, "--gauss-newton", "-o", "g.json", "--parameters", "2.*", "--microbatch", "7")
    assert ec.load_spectrum("g.json").mu > -1e-6
    assert ec.load_spectrum("g.json").dim == 13
    run(*WORDS, "-o", "h.txt", "--memory-budget", "1MB")
    assert load_measurement("h.txt") is None
    run("spectrum", "convert", "g.json", "g.npz")
    assert load_measurement("g.npz").made_by == load_measurement("g.json").made_by
    assert "text format does not record" in run("spectrum", "convert", "g.json", "g.txt").stderr


@pytest.mark.usefixtures("here")
def test_an_unsettled_estimate_warns_and_continues(monkeypatch):
    words = ("estimate", "tiny:problem", "--num-products=40", "--checkpoint", "run.npz")
    monkeypatch.setattr(sys, "argv", ["eigencurve", *words])
    first = run(*words)
    assert "warning: The spectrum has not settled (40 products" in first.stderr
    last = first.stdout.splitlines()[-1]
    again = "eigencurve estimate tiny:problem --checkpoint run.npz --num-products 80 --force"
    assert last == f"next: {again}  (resumes from the checkpoint)"
    second = run(*again.split()[1:])
    assert "resuming from step 40 of run.npz" in second.stderr
    import tiny

    expected = estimate_spectrum(HessianOperator(*tiny.problem()), 80, progress=False)
    assert load_measurement("spectrum.npz").num_products == expected.num_products
    np.testing.assert_array_equal(load_measurement("spectrum.npz").alphas[0], expected.alphas[0])
    facts = json.loads(run(*words, "--json", "--force").stdout)
    assert facts["settled"] is False


def test_a_killed_run_resumes_from_its_checkpoint(here):
    run(*WORDS, "-o", "whole.npz")
    words = [sys.executable, "-m", "eigencurve.cli", *WORDS, "-o", "s.npz", "--checkpoint", "run.npz"]
    slow = subprocess.Popen(words, env={**os.environ, "SLOW": "0.05"}, stderr=subprocess.PIPE, text=True)
    while not (here / "run.npz").exists():
        time.sleep(0.05)
    slow.send_signal(signal.SIGINT)
    _, errors = slow.communicate()
    assert slow.returncode == 130
    assert errors.startswith("Interrupted. stopped after ")
    assert "Run the same command again to resume." in errors
    assert len(errors.splitlines()) == 1
    assert not (here / "s.npz").exists()
    subprocess.run(words, check=True, capture_output=True)
    assert ec.load_spectrum("s.npz") == ec.load_spectrum("whole.npz")


@pytest.mark.usefixtures("here")
def test_the_noise_is_measured_and_kept_with_the_spectrum():
    shown = run(*WORDS, "--noise", "--batch-size", "8", "--checkpoint", "run.npz", "-o", "n.npz").stdout
    import tiny

    operator = HessianOperator(*tiny.problem())
    expected = estimate_noise(
        operator, estimate_spectrum(operator, 60, num_probes=2, settle=None, weight_decay=1e-3), 8
    )
    known = load_noise("n.npz")
    np.testing.assert_allclose(known.octaves.sigma2, expected.octaves.sigma2)
    assert str(known.octaves) in shown
    assert str(known.octaves) in run("spectrum", "show", "n.npz").stdout
    run("spectrum", "convert", "n.npz", "n.json")
    assert load_noise("n.json").sigma2 == known.sigma2
    facts = json.loads(run(*WORDS, "--noise", "--batch-size", "8", "--json", "-o", "m.json").stdout)["noise"]
    assert facts["sigma2"] == pytest.approx(known.sigma2)


def save_states(kind, **settings):
    """The states of the model and of an optimizer after five steps from another start."""
    import tiny

    model, loss_fn, batches = tiny.problem()
    torch.save({name: value + 0.1 for name, value in model.state_dict().items()}, "start.pt")
    copied = copy.deepcopy(model)
    optimizer = kind(copied.parameters(), **settings)
    for _ in range(5):
        optimizer.zero_grad()
        loss_fn(copied(batches[0][0]), batches[0][1]).backward()
        optimizer.step()
    torch.save({"optimizer": optimizer.state_dict()}, "optimizer.pt")
    own = kind(model.parameters(), **settings)
    own.load_state_dict(optimizer.state_dict())
    return HessianOperator(model, loss_fn, batches).preconditioned_by(own), model


STATE = ("--optimizer-state", "optimizer.pt")


@pytest.mark.usefixtures("here")
def test_everything_is_measured_in_the_metric_of_the_optimizer():
    sys.path.insert(0, "")
    operator, model = save_states(torch.optim.AdamW, lr=1e-3, weight_decay=0.1)
    words = ("estimate", "tiny:problem", "--settle", "0", *STATE, "--noise", "--batch-size", "8")
    shown = run(*words, "--start-state", "start.pt", "--steps", "500", "-o", "p.npz").stdout
    expected = estimate_spectrum(operator, settle=None, weight_decay=0.1, total_steps=500)
    noise = estimate_noise(operator, expected, 8)
    start = estimate_start(operator, ({n: v + 0.1 for n, v in model.state_dict().items()}, model), expected)
    assert ec.load_spectrum("p.npz") == expected.spectrum
    np.testing.assert_allclose(load_noise("p.npz").octaves.sigma2, noise.octaves.sigma2)
    np.testing.assert_allclose(load_start("p.npz").octaves.level, start.octaves.level, rtol=1e-6)
    known = load_measurement("p.npz")
    assert (known.preconditioner, known.weight_decay) == ("AdamW", pytest.approx(0.1))

    p = ec.spectrum.prepare(expected.spectrum, 0.1)
    limit = f"largest stable rate (2+2β₁)/((1-β₁)L) = {3.8 / (0.1 * p.L):.3g}"
    assert f"L = {p.L:.4g}, kappa = {p.kappa:.4g}, {limit}" in shown
    assert f"T/kappa = {500 / p.kappa:.3g} (T = 500)" in shown
    assert f"stability: {stability_report(expected.spectrum.L, 1e-3, 0.9, 0.1)}" in shown
    assert "in the metric of AdamW" in shown
    assert str(noise.octaves) in shown
    assert "gamma" in shown
    assert "critical batch size" in shown
    assert "next: eigencurve plan p.npz --steps 500 --lr 0.001" in shown
    again = run("spectrum", "show", "p.npz").stdout
    assert "in the metric of AdamW" in again
    assert str(noise.octaves) in again
    assert str(load_start("p.npz").octaves) in again
    facts = json.loads(run("spectrum", "show", "p.npz", "--json").stdout)
    assert facts["measurement"]["preconditioner"] == "AdamW"
    assert facts["noise"]["octaves"]["error"] == load_noise("p.npz").octaves.error.tolist()
    assert facts["start"]["excess_loss"] == load_start("p.npz").loss

    compared = run("compare", "p.npz", "--steps", "50", "--batch-size", "16").stdout
    assert f"Noise: measured, σ² = {noise.sigma2 / 2:.3g} (B = 16, γ " in compared
    assert "Start: measured, excess loss" in compared


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("kind", "settings", "limit"),
    [
        (torch.optim.Adam, {"lr": 1e-3, "betas": (0.5, 0.9), "weight_decay": 0.3}, 6000),
        (torch.optim.RMSprop, {"lr": 1e-3, "momentum": 0.5}, 3000),
        (torch.optim.Adagrad, {"lr": 1e-3}, 2000),
    ],
)
def test_the_limit_of_stability_is_that_of_the_optimizer(kind, settings, limit):
    sys.path.insert(0, "")
    operator, _ = save_states(kind, **settings)
    facts = json.loads(run("estimate", "tiny:problem", "--settle", "0", *STATE, "--json").stdout)
    found = np.linalg.eigvalsh(torch.stack([operator(row) for row in torch.eye(operator.dim)]).double().numpy())
    assert facts["stability"]["L"] == pytest.approx(found[-1], rel=1e-4)
    assert facts["stability"]["limit"] == pytest.approx(limit)
    assert facts["preconditioner"] == kind.__name__
    # The products contain an L2 decay, so nothing that matters is added.
    assert facts["L"] == pytest.approx(found[-1], rel=1e-4)
    assert facts["weight_decay"] <= 5e-4 or facts["weight_decay"] < 0.011 * np.abs(found).min()
    other = json.loads(run("estimate", "tiny:problem", *STATE, "--lr", "2e-3", "--json", "--force").stdout)
    assert other["stability"]["limit"] == pytest.approx(limit / 2)


def test_a_loss_of_the_wrong_sign_is_measured_and_then_refused(here):
    upside_down = PROBLEM.replace(
        "torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 1)", "torch.nn.Linear(6, 1)"
    )
    (here / "upside_down.py").write_text(upside_down.replace("return (outputs", "return -(outputs"))
    words = ("estimate", "upside_down:problem", "--num-products", "10", "--weight-decay", "1e-3")
    result = invoke(*words)
    assert result.exit_code == 2
    assert "check the sign of the loss" in result.stderr
    assert ec.load_spectrum(here / "spectrum.npz").negative_share == 1
