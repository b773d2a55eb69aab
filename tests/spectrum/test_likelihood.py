import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from eigencurve.spectrum.likelihood import exponent_and_error, height_variance, mean_height


@given(rate=st.floats(-20, 20), span=st.floats(0.1, 30))
def test_moments_of_the_truncated_exponential(rate, span):
    # Scaled by the largest value of the density, so quad sees no value above 1.
    density = lambda x: math.exp(-rate * x + min(0.0, rate) * span)  # noqa: E731
    points = [span * (1 - 1e-3), span * 1e-3]
    mass, first, second = (
        quad(lambda x, k=k: x**k * density(x), 0, span, points=points, epsabs=0, epsrel=1e-10, limit=300)[0]
        for k in (0, 1, 2)
    )
    assert mean_height(rate, span) == pytest.approx(first / mass, rel=1e-6)
    assert height_variance(rate, span) == pytest.approx(second / mass - (first / mass) ** 2, rel=1e-4, abs=1e-9)


def test_the_error_is_the_spread_of_the_fits():
    """500 samples of 400 eigenvalues: the spread of the fitted exponents equals the error that each fit reports."""
    rng = np.random.default_rng(1)
    span = math.log(1e4)
    fits = []
    for _ in range(500):
        x = -np.log1p(-rng.random(400) * (1 - math.exp(-0.8 * span))) / 0.8
        x[0], x[1] = 0.0, span  # the range is known
        fits.append(exponent_and_error(np.exp(np.sort(x)), np.full(400, 1 / 400), count=400))
    alphas, errors = np.array(fits).T
    reported = errors.mean()
    # Two of 400 values are fixed, which shifts the mean by about 1 %; the spread of 500 fits is known to 3 %.
    assert alphas.mean() == pytest.approx(1.8, abs=0.03)
    assert alphas.std() == pytest.approx(reported, rel=0.12)


@given(heights=st.lists(st.floats(0.1, 9.9), min_size=3, max_size=30))
def test_the_exponent_maximises_the_likelihood(heights):
    x = np.sort([0.0, *heights, 10.0])
    weights = np.full(len(x), 1 / len(x))

    def minus_log_likelihood(alpha):
        a = alpha - 1
        mass = 10.0 if a == 0 else -math.expm1(-10 * a) / a
        return a * (weights @ x) + math.log(mass)

    best = minimize_scalar(minus_log_likelihood, bounds=(-20, 20), method="bounded", options={"xatol": 1e-9})
    # The minimum is flat: function values accurate to 1e-16 locate it to about 1e-7.
    assert exponent_and_error(np.exp(x), weights, count=len(x))[0] == pytest.approx(best.x, abs=1e-5)


@pytest.mark.parametrize("eigenvalues", [[2.0], [2.0, 2.0], [2.0, 2.0, 2.0]])
def test_equal_eigenvalues_have_no_exponent(eigenvalues):
    weights = np.full(len(eigenvalues), 1 / len(eigenvalues))
    assert exponent_and_error(np.array(eigenvalues), weights, count=10) is None


def test_nearly_all_weight_on_one_end_has_no_exponent():
    assert exponent_and_error(np.array([1.0, 1e3]), np.array([1 - 1e-12, 1e-12]), count=10) is None
