"""That what commands write and print is what the functions behind them give."""

import json
import sys

import numpy as np
import pytest
from tests.cli.golden import prepare
from typer.testing import CliRunner

import eigencurve as ec
from eigencurve.cli import app
from eigencurve.commands.output import show_table
from eigencurve.planning.spectra import compare_spectra
from eigencurve.planning.subject import file_subject
from eigencurve.spectrum.zoo import ZOO, zoo_spectrum

LAW = ("--power-law", "1.5", "--kappa", "1e4")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    return tmp_path


def run(*words, **settings):
    result = CliRunner().invoke(app, list(words), **settings)
    assert result.exit_code == 0, result.stderr
    return result


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
        run("spectrum", "plot", "small.txt", "--weight-decay", "1e-3", "-o", f"s.{end}", "--title", "a < b")
        assert (here / f"s.{end}").read_bytes().startswith(head)
    assert "a &lt; b" in (here / "s.svg").read_text()


def test_without_matplotlib_figures_name_the_extra(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "eigencurve.figures.rates", None)
    result = CliRunner().invoke(app, ["schedule", "--kind", "cosine", "--steps", "9", "-o", "f.png"])
    assert result.exit_code == 1
    assert not (here / "f.png").exists()


def test_spectra_are_converted_exactly(here):
    original = ec.load_spectrum("small.txt")
    for path in ("a.npz", "b.json", "c.txt"):
        run("spectrum", "convert", "small.txt", path)
        assert ec.load_spectrum(path) == original
    text = run("spectrum", "convert", "a.npz", "-").stdout
    assert run("spectrum", "convert", "-", "-", input=text).stdout == text
    run("zoo", "export", "resnet20_cifar10", "zoo.json")
    assert ec.load_spectrum("zoo.json") == zoo_spectrum("resnet20_cifar10")
    npz = (here / "a.npz").read_bytes()
    shown = run("spectrum", "show", "-", "--weight-decay", "1e-3", "--json", input=npz).stdout
    assert json.loads(shown)["num_nodes"] == 5


def test_spectra_of_one_name_are_told_apart_by_their_paths(here):
    (here / "late").mkdir()
    run("spectrum", "convert", "positive.txt", "late/small.txt")
    words = ("spectrum", "compare", "small.txt", "late/small.txt", "--weight-decay", "1e-3", "--json")
    assert list(json.loads(run(*words).stdout)["kappa"]) == ["small.txt", "late/small.txt"]


def test_a_comparison_of_spectra_is_that_of_their_groups(here):
    subjects = {name: file_subject(here / name, 1e-3) for name in ("small.txt", "positive.txt")}
    compared = compare_spectra(subjects, 100)
    for name, subject in subjects.items():
        assert compared.shares[name].sum() == pytest.approx(1)
        inside = [
            subject.spectrum.weights[
                (subject.spectrum.eigenvalues >= low) & (subject.spectrum.eigenvalues < 2 * low)
            ].sum()
            for low in compared.lower
        ]
        np.testing.assert_allclose(compared.shares[name], inside)
        assert compared.extra_terms[name] == ec.extra_term(subject.spectrum)
    curves = [ec.eigencurve(subject.spectrum, 100, 1.0).values() for subject in subjects.values()]
    assert compared.distances["small.txt", "positive.txt"] == pytest.approx(np.abs(np.log(curves[0] / curves[1])).max())
    with pytest.raises(ValueError, match="at least two spectra"):
        compare_spectra({"one": subjects["small.txt"]}, 100)


def test_losses_are_those_of_the_theory():
    found = json.loads(run("compare", *LAW, "--steps", "80", "--noise", "9", "--lr", "0.1", "--json").stdout)
    q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 5e-4, 5.0).spectrum(), noise=9.0)
    losses = {row["name"]: row["loss"] for row in found["rows"]}
    assert losses["cosine"] == pytest.approx(q.expected_loss(ec.cosine(80, 0.1)), rel=1e-12)
    assert found["lower_bound"] == pytest.approx(q.lower_bound(80, 0.4), rel=1e-12)
    assert all(row["gap"] >= 0 for row in found["rows"])


def test_the_best_schedule_beats_the_others_and_can_be_used(here):
    found = json.loads(run("compare", *LAW, "--steps", "60", "--noise", "30", "--best", "--json").stdout)
    assert found["rows"][0]["name"] == "numerically best"
    best = json.loads(run("optimal", *LAW, "--steps", "60", "--noise", "30", "--json", "-o", "best.json").stdout)
    assert best["loss"] == pytest.approx(found["rows"][0]["loss"], rel=1e-6)
    assert best["lower_bound"] == pytest.approx(found["lower_bound"])
    schedule = ec.schedule_from_dict(best["schedule"])
    q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 5e-4, 5.0).spectrum(), noise=30.0)
    assert q.expected_loss(schedule) == pytest.approx(best["loss"])
    assert json.loads((here / "best.json").read_text()) == best["schedule"]


def test_the_zoo_lists_all_it_has():
    listed = json.loads(run("zoo", "--json").stdout)
    assert [entry["name"] for entry in listed] == list(ZOO)
    lines = run("zoo").stdout.splitlines()
    assert lines[0].split() == ["name", "network", "measured", "on", "weight", "decay"]
    assert [line.split()[0] for line in lines[1:]] == list(ZOO)
    assert all(
        entry.network in line and entry.data in line for entry, line in zip(ZOO.values(), lines[1:], strict=True)
    )


def test_a_table_is_cut_to_no_width_in_a_pipe(capsys):
    show_table(("name", "number"), [("x" * 300, "1"), ("y", "22")], right=(1,))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "x" * 300 + "       1"
    assert lines[2].endswith("22")


def test_published_spectra_give_the_schedule_of_the_functions(data_path):
    path = data_path("spectra/resnet-18_cifar10.txt")
    words = ("schedule", str(path), "--weight-decay", "5e-4", "--epochs", "100", "--steps-per-epoch", "391", "--json")
    f = ec.eigencurve(ec.prepare(ec.load_spectrum(path), 5e-4), 39_100, 0.1)
    assert json.loads(run(*words).stdout) == f.to_dict()
