import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference import forecast as reference

import eigencurve as ec
from eigencurve.forecast.measures import LARGEST, SPACING, effective_schedule, grid_for, noise_power, responses


@given(st.floats(10, 1e7))
def test_the_grid_is_even_in_the_logarithm_and_covers_the_run(travel):
    grid = grid_for(travel)
    assert_allclose(np.diff(np.log(grid.lam)), SPACING)
    assert grid.lam[-1] == LARGEST
    assert grid.lam[0] * travel <= 1e-3
    assert len(grid.noisy) >= 3
    assert grid.noisy[0] * travel >= 0.5 or len(grid.noisy) == 3


@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.6])
def test_responses_are_those_of_the_literal_loop(gamma):
    schedule = ec.warmup(ec.cosine(90, 0.02), 10)
    grid, marks = grid_for(60.0), np.array([5, 40, 100])
    bias, variance = responses(grid, effective_schedule(schedule, 0.02, gamma), gamma, marks)
    error, noise = reference.responses(grid.lam, schedule.values() / 0.02, gamma, {5, 40, 100})
    assert_allclose(bias, error, rtol=1e-10, atol=1e-300)
    assert_allclose(variance, noise[:, grid.first_noisy :], rtol=1e-10)


@given(st.floats(0, 0.8))
def test_the_noise_power_turns_effective_rates_into_that_of_the_rate(gamma):
    rate = 0.37
    assert (rate ** (1 - gamma)) ** (2 + noise_power(gamma)) == pytest.approx(rate ** (2 - 1.5 * gamma))
