import dataclasses
import math

import numpy as np
import pytest

from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.octaves import Octaves


def noise(**changes):
    columns = {
        "num_eigenvalues": np.array([1.0, 6.0, 3.0]), "eigenvalue_sum": np.array([0.1, 1.2, 9.0]),
        "mass": np.array([0.2, 2.4, 36.0]), "gradient": np.array([0.1, -0.2, 3.0]),
        "gradient_error": np.array([0.2, 0.2, 0.3]),
    }  # fmt: skip
    octaves = Octaves(
        "sigma2", np.array([0, 1, 4]), np.array([0.1, 0.2, 1.6]), np.array([0.5, 0.5, 1.0]), np.array([0.1, 0.1, 0.2]),
        5e-4, columns,
    )  # fmt: skip
    made = NoiseEstimate(
        octaves=octaves, sigma2=0.9, sigma2_error=0.1, exponent=1.1, exponent_error=0.2, trace=38.6, trace_hc=100.0,
        gradient_square=2.9, gradient_curvature=10.0, gradient_curvature_error=1.0, batch_size=4, num_samples=2,
        num_products=180, num_examples=64, seconds=1.5,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


@pytest.mark.parametrize(
    ("curvature", "trace_hc", "expected", "words"),
    [
        (10.0, 100.0, 10.0, "critical batch size: 10 +- 1 examples"),
        (1.9, 100.0, math.inf, "is not larger than its noise"),
        (-1.9, 100.0, math.inf, "is not larger than its noise"),
        (-2.1, 100.0, math.nan, "does not curve upwards"),
        (10.0, -1.0, math.nan, "does not curve upwards"),
    ],
)
def test_the_critical_batch_size_needs_a_gradient(curvature, trace_hc, expected, words):
    made = noise(gradient_curvature=curvature, trace_hc=trace_hc)
    np.testing.assert_equal(made.critical_batch_size, expected)
    assert words in str(made)


def test_levels_are_constant_in_an_octave_and_follow_the_nearest_outside():
    heights = np.array([0.01, 0.15, 0.39, 0.41, 1.5, 1.6, 3.1, 100.0])
    np.testing.assert_array_equal(noise().levels(heights), [0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0])


def test_the_summary_names_what_was_measured():
    text = str(noise())
    assert "180 products in 1.5 s, 2 sign vectors, 64 examples" in text
    assert "sigma^2 = 9.000e-01 +- 1.0e-01 for batches of 4; C ~ H^gamma with gamma = 1.10 +- 0.20" in text
    assert "noise per octave of |lambda| + 0.0005" in text
    assert "from 1.6" in text


def test_another_batch_size_scales_the_levels():
    made = noise().with_batch_size(8)
    np.testing.assert_allclose(made.octaves.error, noise().octaves.error / 2)
    assert made.sigma2_error == noise().sigma2_error / 2
    np.testing.assert_allclose(made.octaves.sigma2, noise().octaves.sigma2 / 2)
    assert made.sigma2 == pytest.approx(0.45)
    with pytest.raises(ValueError, match="'batch_size' must be >= 1"):
        noise().with_batch_size(0)
