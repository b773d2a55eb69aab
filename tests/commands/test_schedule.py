import json
import sys

import numpy as np
import pytest
from tests.commands.running import run
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
    )
    f = ec.warmup(ec.eigencurve(ec.prepare(ec.load_spectrum("small.txt"), 1e-3), 45, 0.1), 5)
    assert ec.schedule_from_dict(json.loads((here / "a.json").read_text())) == f
    rows = np.loadtxt(here / "a.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(rows, np.stack((np.arange(50), f.values()), axis=1))
    assert json.loads(run("schedule", "--load", "a.json", "--json").stdout) == f.to_dict()
    assert (
        json.loads(run("schedule", "--load", "-", "--json", input=(here / "a.json").read_text()).stdout) == f.to_dict()
    )


def test_without_matplotlib_figures_name_the_extra(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "eigencurve.figures.rates", None)
    result = CliRunner().invoke(app, ["schedule", "--kind", "cosine", "--steps", "9", "-o", "f.png"])
    assert result.exit_code == 1
    assert not (here / "f.png").exists()


def test_published_spectra_give_the_schedule_of_the_functions(data_path):
    path = data_path("spectra/resnet-18_cifar10.txt")
    words = ("schedule", str(path), "--weight-decay", "5e-4", "--epochs", "100", "--steps-per-epoch", "391", "--json")
    f = ec.eigencurve(ec.prepare(ec.load_spectrum(path), 5e-4), 39_100, 0.1)
    assert json.loads(run(*words).stdout) == f.to_dict()


def test_a_file_is_overwritten_only_by_force(here):
    (here / "a.csv").write_text("mine")
    words = ("schedule", "--kind", "linear", "--steps", "3", "-o", "a.csv")
    assert CliRunner().invoke(app, list(words)).exit_code == 2
    assert (here / "a.csv").read_text() == "mine"
    run(*words, "--force")
    assert (here / "a.csv").read_text().startswith("step,lr\n0,0.1\n")


def test_figures_are_of_the_kind_that_their_name_says(here):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    heads = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    run("schedule", "--kind", "cosine", "--steps", "9", *(word for end in heads for word in ("-o", f"f.{end}")))
    for end, head in heads.items():
        assert (here / f"f.{end}").read_bytes().startswith(head)
