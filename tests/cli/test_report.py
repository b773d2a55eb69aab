from pathlib import Path

import pytest
from tests.cli.running import invoke
from tests.report.test_runs import store  # noqa: F401 -- a fixture
from typer.testing import CliRunner

import eigencurve as ec
from eigencurve.cli import app

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def test_the_command_writes_the_page(tmp_path, monkeypatch, store):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    words = ["report", "--power-law", "1.5", "--kappa", "1e3", "--steps", "60", "--no-best", "--store", str(store.path)]
    result = invoke(*words, "-o", "r.html")
    assert result.exit_code == 0, result.stderr
    page = Path("r.html").read_text()
    assert "Training runs" in page
    assert "Comparison with other schedules" in page
    printed = invoke(*words, "-o", "-")
    assert "momentum=" not in page
    assert printed.stdout == page.replace("-o r.html", "-o -")
    assert invoke(*words, "-o", "r.html").exit_code == 2


def test_momentum_is_that_of_the_comparison_and_of_the_code():
    words = ["report", "--power-law", "1.5", "--kappa", "1e3", "--steps", "60", "--momentum", "0.9", "--nesterov"]
    result = invoke(*words, "-o", "-")
    assert result.exit_code == 0, result.stderr
    assert "lr=schedule.lr, momentum=0.9, nesterov=True" in result.stdout
    assert "There is no certificate with momentum" in result.stdout
    assert "numerically best" in result.stdout


def test_the_report_does_not_change_the_store(tmp_path, store):  # noqa: F811
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    result = invoke("report", "--store", str(store.path), "-o", "-")
    assert result.exit_code == 0, result.stderr
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()} == before


@pytest.mark.usefixtures("here")
def test_the_page_shows_where_the_noise_comes_from():
    words = ["report", "noisy.npz", "--steps", "60", "--no-best", "-o", "-"]
    page = invoke(*words).stdout
    assert "Noise: measured, σ² = 0.9 (B = 4, γ = 1.10)" in page
    assert "Start: measured, excess loss 5" in page
    page = invoke(*words, "--batch-size", "8", "--initial-error", "2").stdout
    assert "Noise: measured, σ² = 0.45 (B = 8, γ = 1.10)" in page
    assert "Start: given, initial error 2" in page
    assert "Noise: given, σ² = 7" in invoke(*words, "--noise", "7").stdout
    page = CliRunner().invoke(app, ["report", "positive.txt", *words[2:]]).stdout
    assert "Noise: assumed, σ² = 10,000; measure it with <code>eigencurve estimate --noise</code>" in page


@pytest.mark.usefixtures("here")
def test_the_page_opens_with_the_plan_of_its_own_options():
    words = ["report", "noisy.npz", "--steps", "60", "--no-best", "--batch-size", "8", "--warmup", "5", "-o", "-"]
    options = {"total_steps": 60, "batch_size": 8, "warmup_steps": 5}
    free = ec.plan("noisy.npz", **options)
    page = invoke(*words).stdout
    assert f'<p class="verdict">{free.verdict}' in page
    assert f"Peak rate {free.rates.best:.4g}" in page
    page = invoke(*words, "--lr", "3", "--momentum", "0.9", "--weight-decay", "0.1").stdout
    given = ec.plan("noisy.npz", **options, lr=3.0, momentum=0.9, weight_decay=0.1)
    assert f'<p class="verdict">{given.verdict}' in page
    assert "Peak rate 3 is " in page
