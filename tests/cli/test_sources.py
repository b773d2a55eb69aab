import io
import sys
from types import SimpleNamespace

import pytest

import eigencurve as ec
from eigencurve.cli.sources import optional_subject, required_subject, subject_of
from eigencurve.spectrum.zoo import zoo_spectrum

SPECTRUM = ec.Spectrum([0.5, 2.0], [3, 1])


@pytest.mark.parametrize("suffix", [".npz", ".json", ".txt"])
def test_standard_input_is_read_in_every_format(suffix, tmp_path, monkeypatch):
    ec.save_spectrum(SPECTRUM, tmp_path / f"s{suffix}")
    content = (tmp_path / f"s{suffix}").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    found = subject_of("-")
    assert (found.raw, found.name) == (SPECTRUM, "standard input")


def test_a_file_wins_over_a_name_of_the_zoo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert subject_of("resnet20_cifar10").raw == zoo_spectrum("resnet20_cifar10")
    (tmp_path / "resnet20_cifar10").write_text("1 1\n")
    with pytest.raises(ValueError, match=r"a file name ending in \.npz, \.json, \.txt, got 'resnet20_cifar10'"):
        subject_of("resnet20_cifar10")
    ec.save_spectrum(SPECTRUM, tmp_path / "mine.txt")
    assert subject_of("mine.txt", 0.25).spectrum == ec.spectrum.prepare(SPECTRUM, 0.25)


def test_an_unknown_word_is_refused_and_a_missing_file_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = r"'resnet21' is neither a file nor a spectrum of the zoo\. Did you mean 'resnet20_cifar10'\?"
    with pytest.raises(ValueError, match=refused):
        subject_of("resnet21")
    with pytest.raises(ValueError, match=r"of the zoo\. 'eigencurve zoo' lists the names\."):
        subject_of("bert")
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        subject_of("none.npz")


def test_a_power_law_needs_no_file():
    assert required_subject(None, 1.5, 1e4, 1e-3).prepared == ec.PowerLaw(1.5, 1e-3, 10.0)
    assert optional_subject(None, None, None, None) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((None, None, None, None), "The spectrum is missing: pass a file"),
        ((None, None, 1e4, None), "--kappa needs --power-law"),
        ((None, 1.5, None, None), "--power-law needs --kappa"),
        (("resnet20_cifar10", 1.5, 1e4, None), "either a spectrum or --power-law, not both"),
    ],
)
def test_half_a_source_or_two_are_refused(words, message):
    with pytest.raises(ValueError, match=message):
        required_subject(*words)
