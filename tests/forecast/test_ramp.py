import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import eigencurve as ec
from eigencurve.forecast.coverage import coverage_of
from eigencurve.forecast.logged_schedule import schedule_from_rates
from eigencurve.forecast.ramp import ramp_of

T, PEAK = 1000, 0.1
DECAYS = {
    "constant": lambda u: np.ones(len(u)),
    "linear": lambda u: 1 - u,
    "cosine": lambda u: (1 + np.cos(np.pi * u)) / 2,
}


def rates_of(convention, decay, rise):
    """The rates of all steps: warmups of PyTorch and transformers begin at 0, those of the library one step later."""
    t = np.arange(T)
    after = PEAK * DECAYS[decay](np.clip((t - rise) / (T - rise), 0, 1))
    ramp = PEAK * (t / rise if convention == "torch" else (t + 1) / (rise + 1))
    return np.where(t < rise, ramp, after)


@given(
    convention=st.sampled_from(["torch", "library"]),
    decay=st.sampled_from(sorted(DECAYS)),
    rise=st.integers(2, 120),
    every=st.sampled_from([1, 2, 5, 10, 20, 50]),
    data=st.data(),
)
def test_a_warmup_is_recovered_to_within_the_interval(convention, decay, rise, every, data):
    rates = rates_of(convention, decay, rise)
    steps = np.arange(data.draw(st.integers(0, every)), T, every)
    found, _ = schedule_from_rates(steps, rates[steps], T)
    read = coverage_of(found, PEAK).warmup_steps
    assert abs(read - rise) <= every + 1
    inside = steps[(steps < rise) & (rates[steps] > 0)]
    if len(inside) >= 2:
        assert abs(read - rise) <= 1
        assert_allclose(found.values()[steps[0] :], rates[steps[0] :], atol=0.02 * PEAK)


@pytest.mark.parametrize(("rise", "every"), [(5, 10), (7, 10), (15, 20), (33, 50)])
def test_a_warmup_inside_the_first_interval_is_exact_from_the_first_rate_of_the_library(rise, every):
    """The rate of step 0 is the peak over W + 1."""
    steps = np.arange(0, T, every)
    found, notes = schedule_from_rates(steps, rates_of("library", "cosine", rise)[steps], T)
    assert not notes
    assert coverage_of(found, PEAK).warmup_steps == rise


def test_a_logged_peak_or_another_shape_is_no_ramp():
    steps = np.arange(0.0, T, 10)
    assert ramp_of(steps, rates_of("torch", "cosine", 55)[::10]) is not None
    for schedule in (ec.one_cycle(T, PEAK), ec.cosine(T, PEAK), ec.constant(T, PEAK)):
        assert ramp_of(steps, schedule.values()[::10]) is None
    assert ramp_of(np.arange(float(T)), rates_of("torch", "cosine", 50)) is None


def test_a_known_warmup_is_taken_if_it_is_between_the_two_rates():
    steps = np.arange(0.0, T, 50)
    rates = rates_of("torch", "linear", 15)[::50]
    ramp = ramp_of(steps, rates, 15)
    assert (ramp.end, ramp.first, ramp.last) == (15, 15, 15)
    assert ramp.rate == pytest.approx(PEAK, rel=1e-9)
    assert ramp_of(steps, rates, 80) is None


def test_a_peak_between_two_rows_is_round():
    schedule = ec.warmup(ec.cosine(380, lr=0.01), 21)
    steps = np.arange(4, 400, 5)
    ramp = ramp_of(steps.astype(float), schedule.values()[steps])
    assert ramp is not None
    assert ramp.rate == 0.01
