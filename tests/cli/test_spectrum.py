import json

import pytest
from tests.cli.running import run

import eigencurve as ec
from eigencurve.spectrum.zoo import zoo_spectrum


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


def test_a_figure_is_of_the_kind_that_its_name_says(here):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    for end, head in {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}.items():
        run("spectrum", "plot", "small.txt", "--weight-decay", "1e-3", "-o", f"s.{end}", "--title", "a < b")
        assert (here / f"s.{end}").read_bytes().startswith(head)
    assert "a &lt; b" in (here / "s.svg").read_text()
