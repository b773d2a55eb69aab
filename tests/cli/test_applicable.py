"""Options that do nothing are refused by their name, in every command."""

import sys

import pytest
from tests.cli.running import LAW, run
from typer.testing import CliRunner

from eigencurve.cli import app

SHORT = ("--steps", "60")
COSINE = ("schedule", "--kind", "cosine", *SHORT, "--lr", "0.1")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan", *SHORT, "--noise", "5"), "--noise must be left out without a source. It only"),
        (("plan", *SHORT, "--initial-error", "5"), "--initial-error must be left out without a source"),
        (("plan", *SHORT, "--loss", "x"), "--loss must be left out without a source. It only"),
        (("plan", "positive.txt", *SHORT, "--lr-column", "x"), "--lr-column must be left out with a spectrum"),
        (("plan", "positive.txt", *SHORT, "--num-steps", "250"), "--num-steps must be left out with a spectrum"),
        (("plan", "constant.csv", *SHORT, "--checkpoint", "x"), "--checkpoint must be left out with logged runs"),
        (("plan", "constant.csv", *SHORT, "--noise", "1"), "--noise must be left out with logged runs"),
        (("plan", "measured:problem", *SHORT, "--noise", "1", "--batch-size", "2"), "--batch-size must be left out"),
        (("plan", *SHORT, "--lr", "1e9"), "--lr must be <= 1000 for sgd, got 1000000000.0. Find the rate"),
        (("plan", *SHORT, "--max-lr", "1e9"), "--max-lr must be <= 1000 for sgd"),
        (("plan", "positive.txt", *SHORT, "--lr", "1e9"), "--lr must be <= 1,000 times the stability limit 2/L = 2.86"),
        (("plan", "positive.txt", *SHORT, "--lr", "1", "--max-lr", "0.5"), "--lr must be <= --max-lr = 0.5, got 1.0"),
        ((*COSINE, "--momentum", "0.9"), "--momentum must be left out without a spectrum and without code"),
        ((*COSINE, "--weight-decay", "0.1"), "--weight-decay must be left out without a spectrum and without code"),
        ((*COSINE, "--warmup-shape", "cosine"), "--warmup-shape must be left out without --warmup"),
        (("schedule", "--kind", "cosine", *SHORT, "--lr", "1e9"), "--lr must be <= 1000 for any optimizer"),
        (("schedule", "positive.txt", *SHORT, "--lr", "1e9"), "--lr must be <= 1,000 times the stability limit"),
        (("schedule", "--load", "saved.json", "--kind", "cosine"), "--kind must be left out with --load"),
        (("schedule", "--load", "saved.json", "--kappa", "9"), "--kappa must be left out with --load"),
        (("schedule", "--load", "saved.json", "--momentum", "0.9"), "--momentum must be left out"),
        (("compare", *LAW, *SHORT, "--lr", "1e9"), "--lr must be <= 1,000 times the stability limit 2/L = 0.4"),
        (("optimal", *LAW, *SHORT, "--max-lr", "1e9"), "--max-lr must be <= 1,000 times the stability limit"),
        (("estimate", "measured:problem", "--lr", "1e9"), "--lr must be <= 1000 for any optimizer"),
        (("estimate", "measured:problem", "--optimizer", "adam", "--optimizer-state", "d.npz"), "--optimizer must"),
        (("report", "--store", "x.sqlite", "--lr", "0.1"), "--lr must be left out without a spectrum"),
        (("report", *LAW, *SHORT, "--nesterov"), "--nesterov must be left out without momentum"),
        (("fit", "constant.csv", "--json", "--report", "-"), "Pass only one of --json and --report -"),
        (("fit", "constant.csv", "--warmup", "6"), "--warmup must be left out: these logs show their own warmup."),
        (("zoo", "--json", "show", "resnet20_cifar10"), "--json must be left out before show. Pass it after"),
    ],
)  # fmt: skip
def test_an_option_that_does_nothing_is_refused_by_name(words, message, monkeypatch):
    monkeypatch.setattr("sys.path", ["", *sys.path])
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == 2, found.output
    assert message in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1


@pytest.mark.usefixtures("here")
def test_the_code_has_the_settings_of_the_command_line():
    sgd = ("--momentum", "0.9", "--nesterov", "--weight-decay", "5e-4", "--optimizer", "sgd", "--code", "torch")
    expected = "torch.optim.SGD(model.parameters(), lr=schedule.lr, momentum=0.9, nesterov=True, weight_decay=0.0005)"
    for words in (("plan", *SHORT), ("plan", "positive.txt", *SHORT), ("plan", "constant.csv", *SHORT), COSINE):
        assert expected in run(*words, *sgd).stdout
    assert expected in run("schedule", "--load", "saved.json", *sgd).stdout
    adam = ("--momentum", "0.8", "--weight-decay", "0.1", "--optimizer", "adamw", "--code", "transformers")
    found = run("plan", "constant.csv", *SHORT, *adam).stdout
    assert 'weight_decay=0.1,\n    optim="adamw_torch", adam_beta1=0.8,' in found


@pytest.mark.usefixtures("here")
def test_a_schedule_alone_leaves_the_optimizer_to_the_reader():
    for words in (COSINE, ("schedule", "--load", "saved.json"), ("plan", "constant.csv", *SHORT)):
        found = run(*words, "--code", "torch").stdout
        assert "# Defined by you: model, loss_fn, optimizer, batches" in found
        assert "weight_decay" not in found


def test_the_report_of_logs_invents_no_optimizer(here):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    run("fit", "constant.csv", "cosine.csv", "--report", "page.html")
    page = (here / "page.html").read_text()
    assert "torch.optim" not in page


def test_beta1_of_zero_is_not_the_default(here):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    run("report", "adam.npz", *SHORT, "--momentum", "0", "--no-best")
    assert "betas=(0.0, 0.999)" in (here / "report.html").read_text()
