import io
import sys
from types import SimpleNamespace

import pytest

import eigencurve as ec
from eigencurve.cli.sources import SpectrumOptions, load_problem, subject_of
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


def test_a_power_law_needs_no_file():
    assert SpectrumOptions(None, 1.5, 1e4, 1e-3).required.prepared == ec.PowerLaw(1.5, 1e-3, 10.0)
    assert SpectrumOptions().optional is None


def test_a_function_of_a_module_in_the_current_folder(here):
    (here / "mine.py").write_text("def problem():\n    return 1, 2, 3\n")
    assert load_problem("mine:problem") == (1, 2, 3)
    sys.modules.pop("mine")
