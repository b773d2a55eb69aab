"""Measuring from the command line: the file, its error bars, the checkpoint."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import eigencurve as ec
from eigencurve.cli import app
from eigencurve.spectrum.files import load_measurement, load_noise

pytest.importorskip("torch", reason="PyTorch is not installed")
from eigencurve.hessian import HessianOperator, estimate_noise, estimate_spectrum

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
    "--num-steps",
    "60",
    "--settle",
    "0",
    "--weight-decay",
    "1e-3",
    "--num-probes",
    "2",
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "tiny.py").write_text(PROBLEM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("tiny", None)


def run(*words):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.stderr
    return result


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
    assert str(expected.octaves) in shown
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


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--noise"], "'--noise' and '--batch-size' must be given together"),
        (["--batch-size", "8"], "'--noise' and '--batch-size' must be given together"),
        (["--noise", "--batch-size", "0"], "'--batch-size' must be >= 1, got 0"),
        (["--noise", "--batch-size", "8", "-o", "s.txt"], "a text file cannot hold the noise"),
    ],
)
def test_noise_options_are_checked_before_measuring(words, message):
    result = CliRunner().invoke(app, [*WORDS, *words])
    assert result.exit_code != 0
    assert message in result.stderr
