import dataclasses
import json

import numpy as np
import pytest

import eigencurve as ec
from eigencurve.spectrum.files import load_noise, load_start
from eigencurve.spectrum.octaves import Octaves
from eigencurve.spectrum.start import StartEstimate

S = ec.Spectrum([-0.1, 0.2, 3.0], [1, 6, 3], dim=10)
OCTAVES = Octaves(
    "level", np.array([0, 1, 4]), np.array([0.1, 0.2, 1.6]), np.array([1.0, 0.5, 2.0]), np.array([0.1, 0.1, 0.2]), 5e-4,
    {"num_eigenvalues": np.array([1.0, 6.0, 3.0]), "mass": np.array([1.0, 3.0, 6.0])},
)  # fmt: skip
START = StartEstimate(octaves=OCTAVES, loss=5.0, source="gradient", num_products=60, seconds=1.0)


def plain(made):
    return json.loads(json.dumps(dataclasses.asdict(made), default=lambda array: array.tolist()))


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_a_file_keeps_the_start(suffix, tmp_path):
    path = tmp_path / f"s{suffix}"
    ec.save_spectrum(S, path, start=START)
    assert plain(load_start(path)) == plain(START)
    assert load_noise(path) is None
    assert ec.load_spectrum(path) == S


def test_an_unknown_source_is_refused(tmp_path):
    path = tmp_path / "s.json"
    with pytest.raises(ValueError, match=r"save_spectrum: 'start' must be complete and finite, got .*guess"):
        ec.save_spectrum(S, path, start=dataclasses.replace(START, source="guess"))
    ec.save_spectrum(S, path, start=START)
    path.write_text(path.read_text().replace('"gradient"', '"guess"'))
    with pytest.raises(ValueError, match="'path' must be a file whose start is complete"):
        load_start(path)


def test_errors_are_constant_in_an_octave():
    np.testing.assert_array_equal(START.errors(np.array([0.01, 0.15, 0.3, 2.0, 9.0])), [1.0, 1.0, 0.5, 2.0, 2.0])


def test_the_summary_names_its_source():
    assert "60 products in 1.0 s, from the gradient" in str(START)
    assert "error 2.000e+00 +- 2.0e-01" in str(START)
