import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference import schedules as reference

import eigencurve as ec
from eigencurve.schedules.practical import half_cosine


@given(T=st.integers(1, 300), r=st.fractions(min_value=Fraction(1, 50), max_value=Fraction(19, 20), max_denominator=50))
def test_elastic_step_matches_its_transcription_in_exact_fractions(T, r):
    assert ec.elastic_step(T, 0.3, float(r)).values().tolist() == reference.elastic_step(T, 0.3, r)


@pytest.mark.parametrize("power", [1, 2, 3, 5, 20])
def test_elastic_step_halves_when_the_remaining_steps_shrank_by_r(power):
    T = 2**16
    values = ec.elastic_step(T, 1.0, r=2 ** (-1 / power)).values()
    for halvings in range(1, 12):
        # After `power` intervals, half of the training remains despite the rounding of r.
        start = T - T // 2**halvings
        assert values[start] == 2.0 ** (-power * halvings)
        assert values[start - 1] == 2.0 ** (1 - power * halvings)


@pytest.mark.parametrize("r", [0.0, 1.0, -0.5, 1.5, float("nan")])
def test_elastic_step_refuses_r_outside_the_open_interval(r):
    with pytest.raises(ValueError, match=r"elastic_step: 'r' must be"):
        ec.elastic_step(100, 0.1, r=r)


@pytest.mark.parametrize("alpha", [0.0, -1.0])
def test_cosine_power_refuses_alpha(alpha):
    with pytest.raises(ValueError, match=r"cosine_power: 'alpha' must be > 0"):
        ec.cosine_power(100, 0.1, alpha=alpha)


def test_smaller_powers_keep_the_rate_high_for_longer():
    curves = [ec.cosine_power(1000, 1.0, alpha=a).values()[1:] for a in (0.5, 1.0, 2.0)]
    assert (curves[0] > curves[1]).all()
    assert (curves[1] > curves[2]).all()
    assert np.isfinite(curves).all()


def test_the_half_cosine_keeps_its_digits_at_the_end():
    """There it is (π x/2)², where x is the distance from the end."""
    left = np.array([1e-3, 1e-6, 1e-9])
    assert_allclose(half_cosine(1 - left), (np.pi * (1 - (1 - left)) / 2) ** 2, rtol=1e-6)
    assert_allclose(half_cosine(np.array([0.0, 0.25, 0.5, 1.0])), [1, (1 + math.sqrt(0.5)) / 2, 0.5, 0], atol=1e-16)
