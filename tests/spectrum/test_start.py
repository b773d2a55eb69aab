import numpy as np

from eigencurve.spectrum.octaves import Octaves
from eigencurve.spectrum.start import StartEstimate

OCTAVES = Octaves(
    "level", np.array([0, 1, 4]), np.array([0.1, 0.2, 1.6]), np.array([1.0, 0.5, 2.0]), np.array([0.1, 0.1, 0.2]), 5e-4,
    {"num_eigenvalues": np.array([1.0, 6.0, 3.0]), "mass": np.array([1.0, 3.0, 6.0])},
)  # fmt: skip
START = StartEstimate(octaves=OCTAVES, loss=5.0, source="gradient", num_products=60, seconds=1.0)


def test_errors_are_constant_in_an_octave():
    np.testing.assert_array_equal(START.errors(np.array([0.01, 0.15, 0.3, 2.0, 9.0])), [1.0, 1.0, 0.5, 2.0, 2.0])


def test_the_summary_names_its_source():
    assert "60 products in 1.0 s, from the gradient" in str(START)
    assert "error 2.000e+00 +- 2.0e-01" in str(START)
