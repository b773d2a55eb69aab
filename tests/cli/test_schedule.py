import json
import sys

import numpy as np
import pytest
from tests.cli.running import run
from typer.testing import CliRunner

import eigencurve as ec
from eigencurve.cli import app


def test_schedules_are_written_exactly(here):
    run(
        "schedule",
        "small.txt",
        "--weight-decay",
        "1e-3",
        "--steps",
        "50",
        "--warmup",
        "5",
        "-o",
        "a.json",
        "-o",
        "a.csv",
        "--lr",
        "0.1",
    )
    f = ec.warmup(ec.eigencurve(ec.spectrum.prepare(ec.load_spectrum("small.txt"), 1e-3), 45, 0.1), 5)
    assert ec.schedule_from_dict(json.loads((here / "a.json").read_text())) == f
    rows = np.loadtxt(here / "a.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(rows, np.stack((np.arange(50), f.values()), axis=1))
    assert json.loads(run("schedule", "--load", "a.json", "--json").stdout) == f.to_dict()
    assert (
        json.loads(run("schedule", "--load", "-", "--json", input=(here / "a.json").read_text()).stdout) == f.to_dict()
    )


def test_without_matplotlib_figures_name_the_extra(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "eigencurve.figures.schedules", None)
    result = CliRunner().invoke(app, ["schedule", "--kind", "cosine", "--steps", "9", "--lr", "1", "-o", "f.png"])
    assert result.exit_code == 1
    assert not (here / "f.png").exists()


def test_published_spectra_give_the_schedule_of_the_functions(data_path):
    path = data_path("spectra/resnet-18_cifar10.txt")
    words = ("schedule", str(path), "--weight-decay", "5e-4", "--epochs", "100", "--steps-per-epoch", "391", "--json")
    words = (*words, "--lr", "0.1")
    f = ec.eigencurve(ec.spectrum.prepare(ec.load_spectrum(path), 5e-4), 39_100, 0.1)
    assert json.loads(run(*words).stdout) == f.to_dict()


def test_a_file_is_overwritten_only_by_force(here):
    (here / "a.csv").write_text("mine")
    words = ("schedule", "--kind", "linear", "--steps", "3", "--lr", "0.1", "-o", "a.csv")
    assert CliRunner().invoke(app, list(words)).exit_code == 2
    assert (here / "a.csv").read_text() == "mine"
    run(*words, "--force")
    assert (here / "a.csv").read_text().startswith("step,lr\n0,0.1\n")


def test_figures_are_of_the_kind_that_their_name_says(here):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    heads = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    run(
        "schedule",
        "--kind",
        "cosine",
        "--steps",
        "9",
        "--lr",
        "1",
        *(word for end in heads for word in ("-o", f"f.{end}")),
    )
    for end, head in heads.items():
        assert (here / f"f.{end}").read_bytes().startswith(head)


@pytest.mark.usefixtures("here")
def test_without_a_rate_half_the_largest_stable_one_is_used():
    limit = 2 / ec.load_spectrum("positive.txt").L
    found = run("schedule", "positive.txt", "--steps", "50", "--json")
    assert json.loads(found.stdout)["lr"] == pytest.approx(limit / 2)
    assert found.stderr.startswith(f"peak rate {limit / 2:.4g}: half the largest stable rate 2/L = {limit:.3g}")
    fast = run("schedule", "positive.txt", "--steps", "50", "--momentum", "0.9", "--json")
    assert json.loads(fast.stdout)["lr"] == pytest.approx(1.9 * limit / 2)


@pytest.mark.usefixtures("here")
def test_a_rate_above_the_limit_is_pointed_out_in_one_line():
    limit = 2 / ec.load_spectrum("positive.txt").L
    shown = run("schedule", "positive.txt", "--steps", "50", "--lr", str(20 * limit)).stdout.splitlines()[0]
    assert f"is 20 times the stability limit 2/L = {limit:.3g} of this spectrum" in shown
    below = run("schedule", "positive.txt", "--steps", "50", "--lr", "0.1").stdout.splitlines()[0]
    assert below == f"largest stable rate 2/L = {limit:.3g}"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kind", "cosine", "-o", "saved.json"), "--lr is missing"),
        (("positive.txt", "--momentum", "1", "-o", "saved.json"), "--momentum must be < 1"),
        (("positive.txt", "--lr", "-1", "-o", "saved.json"), "--lr must be > 0"),
        (("--load", "saved.json", "--lr", "1"), "--lr must be left out with --load"),
    ],
)
def test_options_are_checked_before_files(words, message):
    steps = () if "--load" in words else ("--steps", "50")
    found = CliRunner().invoke(app, ["schedule", *words, *steps])
    assert found.exit_code == 2
    assert message in found.stderr
