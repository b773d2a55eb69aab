import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference import forecast as reference

import eigencurve as ec
from eigencurve.forecast.model import (
    FIRST_NOISE,
    FLOOR,
    LARGEST,
    LOG_AMPLITUDE,
    LOG_EXPONENT,
    LOG_OFFSET,
    PEAK_NOISE,
    PEAK_PROGRESS,
    SPACING,
    law_for,
    noise_power,
)  # fmt: skip

TRAVEL = 2000.0


@pytest.fixture
def law():
    return law_for(TRAVEL, spread=0.8)


@pytest.fixture
def parameters(law):
    values = law.start(lowest=3.0) + 0.1 * np.random.default_rng(0).standard_normal(law.size)
    values[[PEAK_NOISE, PEAK_PROGRESS]] = 0.4, -0.2
    return values


def responses(law, progress):
    """Those of a constant rate for the sum ``progress`` of the rates, and any noise."""
    bias = np.exp(-2 * np.outer(progress, law.lam))
    return bias, np.random.default_rng(1).random((len(progress), len(law.noisy)))


@pytest.mark.parametrize("alpha", [0.2, 0.5, 1.3])
def test_the_measure_of_the_initial_error_is_a_power_law(law, alpha):
    values = law.start(3.0)
    values[LOG_EXPONENT], values[LOG_OFFSET], values[LOG_AMPLITUDE] = math.log(alpha), math.log(0.05), math.log(0.7)
    progress = np.array([100.0, 500.0, 2000.0, 6000.0])
    bias, _ = responses(law, progress)
    found = bias @ law.initial_error(values)
    exact = 0.7 * (progress / TRAVEL + 0.05) ** -alpha
    # Curvature below the grid adds a constant, which belongs to the floor.
    assert_allclose(found - found[-1], exact - exact[-1], rtol=2e-3)


@pytest.mark.parametrize("log_ratio", [0.0, math.log(0.5)])
def test_slopes_are_the_derivatives_of_the_loss(law, parameters, log_ratio):
    bias, variance = responses(law, np.array([200.0, 1500.0]))
    slopes = law.slopes(parameters, bias, variance, log_ratio)
    for i in range(law.size):
        step = np.eye(law.size)[i] * 1e-6
        ends = [law.loss(parameters + sign * step, bias, variance, log_ratio) for sign in (1, -1)]
        assert_allclose(slopes[:, i], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-8)


def test_another_peak_rate_scales_noise_and_progress(law, parameters):
    ratio, progress = math.log(2.0), np.array([400.0, 1600.0])
    bias, variance = responses(law, progress)
    faster, _ = responses(law, progress * 2.0 ** parameters[PEAK_PROGRESS])
    plain = law.loss(parameters, faster, variance, 0.0) - variance @ law.noise(parameters)
    here = law.loss(parameters, bias, variance, ratio) - variance @ law.noise(parameters, ratio)
    assert_allclose(np.diff(here), np.diff(plain), rtol=1e-2)
    assert_allclose(law.noise(parameters, ratio), law.noise(parameters) * 2.0 ** parameters[PEAK_NOISE])


def test_the_progress_slope_is_the_derivative_in_the_logarithm_of_time(law, parameters):
    progress = np.array([300.0, 1500.0])
    slope = law.progress_slope(parameters, responses(law, progress)[0], 0.0)
    ends = [responses(law, progress * factor)[0] @ law.initial_error(parameters) for factor in (1.001, 0.999)]
    # The end of the grid at small λ adds the same small constant to both.
    assert_allclose(slope, (ends[0] - ends[1]) / 0.002, atol=6e-3)
    assert_allclose(np.diff(slope), np.diff((ends[0] - ends[1]) / 0.002), rtol=1e-3)


def test_the_prior_prefers_smooth_noise_of_the_usual_slope(law):
    matrix, values = law.prior()
    usual = law.start(3.0)
    usual[FIRST_NOISE:] += 0.1 * (np.log(law.noisy) - np.log(law.noisy).mean())
    assert_allclose(matrix @ usual, values, atol=1e-10)
    rough = usual.copy()
    rough[FIRST_NOISE::2] += 1.0
    assert np.sum((matrix @ rough - values) ** 2) > 10
    assert not matrix[:, FLOOR].any()


@given(st.floats(10, 1e7))
def test_the_nodes_are_even_in_the_logarithm_and_cover_the_run(travel):
    law = law_for(travel, 1.0)
    assert_allclose(np.diff(np.log(law.lam)), SPACING)
    assert law.lam[-1] == LARGEST
    assert law.lam[0] * travel <= 1e-3
    assert len(law.noisy) >= 3
    assert law.noisy[0] * travel >= 0.5 or len(law.noisy) == 3


@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.6])
def test_responses_are_those_of_the_literal_loop(gamma):
    schedule, law = ec.warmup(ec.cosine(90, 0.02), 10), law_for(60.0, 1.0)
    bias, variance = law.responses(schedule, 0.02, gamma, np.array([5, 40, 100]))
    error, noise = reference.responses(law.lam, schedule.values() / 0.02, gamma, {5, 40, 100})
    assert_allclose(bias, error, rtol=1e-10, atol=1e-300)
    assert_allclose(variance, noise[:, law.first_noisy :], rtol=1e-10)


@given(st.floats(0, 0.8))
def test_the_noise_power_turns_effective_rates_into_that_of_the_rate(gamma):
    rate = 0.37
    assert (rate ** (1 - gamma)) ** (2 + noise_power(gamma)) == pytest.approx(rate ** (2 - 1.5 * gamma))
