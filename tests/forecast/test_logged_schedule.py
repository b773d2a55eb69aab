import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import eigencurve as ec
from eigencurve._check import Arg
from eigencurve.forecast.logged_schedule import schedule_from_rates, uncertain_areas

T = 1000


def logged(schedule, every, first=0):
    steps = np.arange(first, schedule.total_steps, every)
    return steps, schedule(steps)


@given(st.lists(st.floats(0, 1), min_size=20, max_size=40).filter(lambda rates: max(rates) > 0))
def test_rates_logged_at_every_step_are_exact(rates):
    schedule, _ = schedule_from_rates(np.arange(len(rates)), np.array(rates), len(rates))
    assert_array_equal(schedule.values(), rates)


@pytest.mark.parametrize("every", [1, 10, 20])
@pytest.mark.parametrize(
    "schedule",
    [
        ec.constant(T, 0.1),
        ec.linear(T, 0.1),
        ec.cosine(T, 0.1),
        ec.exponential(T, 0.1, 1e-3),
        ec.warmup(ec.cosine(T - 100, 0.1), 100),
        ec.wsd(T, 0.1, decay_steps=300),
    ],
    ids=lambda f: f.kind,
)
def test_smooth_schedules_are_recovered_without_a_warning(schedule, every):
    found, notes = schedule_from_rates(*logged(schedule, every), T)
    assert not notes
    assert_allclose(found.values().sum(), schedule.values().sum(), rtol=2e-3)
    assert np.abs(found.values() - schedule.values()).max() < 0.02 * 0.1


def test_a_drop_that_could_be_anywhere_is_a_warning():
    schedule = ec.multistep(T, 0.1, [475, 725])
    _, (note,) = schedule_from_rates(*logged(schedule, 50), T)
    assert "between step 450 (0.1) and 500 (0.01) it may have changed anywhere" in note[0]
    assert Arg("schedule") in note
    _, notes = schedule_from_rates(*logged(schedule, 5), T)
    assert not notes


def test_a_peak_between_two_logged_rates_is_recovered():
    schedule = ec.warmup(ec.linear(T - 150, 0.1), 150)
    found, notes = schedule_from_rates(*logged(schedule, 100), T)
    assert not notes
    assert_allclose(found.values(), schedule.values(), rtol=1e-9)


def test_a_first_row_at_the_logging_interval_needs_no_warning():
    for every in (10, 40):
        for first in (every - 1, every, every + 1):
            steps = np.arange(first, T, every)
            _, notes = schedule_from_rates(steps, np.full(len(steps), 0.3), T)
            assert not notes
    steps = np.arange(100, T, 100)
    _, (note,) = schedule_from_rates(steps, np.full(len(steps), 0.3), T)
    assert "no learning rate is logged before step 100 (10.0% of the run)" in note[0]


def test_a_warmup_that_may_end_anywhere_in_an_interval_is_a_warning():
    steps = np.arange(0, T, 50)
    rates = np.where(steps == 0, 0.0, 0.3)
    found, (note,) = schedule_from_rates(steps, rates, T)
    assert note[0].startswith("the warmup ends anywhere from step 1 to 50")
    assert Arg("warmup_steps") in note
    assert int(np.argmax(found.values())) == 25
    found, notes = schedule_from_rates(steps, rates, T, warmup_steps=15)
    assert not notes
    assert_allclose(found.values(), 0.3 * np.minimum(np.arange(T) / 15, 1.0))


@given(
    knots=st.lists(st.integers(1, 50), min_size=3, max_size=12),
    rates=st.lists(st.floats(0, 1), min_size=12, max_size=12),
    scale=st.floats(0.1, 10),
)
def test_areas_scale_with_the_rates_and_the_steps(knots, rates, scale):
    places, values = np.cumsum(knots).astype(float), np.array(rates[: len(knots)])
    areas = uncertain_areas(places, values)
    assert (areas >= 0).all()
    assert_allclose(uncertain_areas(scale * places, scale * values), scale**2 * areas, rtol=1e-9, atol=1e-12)
    assert_allclose(uncertain_areas(-places[::-1], values[::-1])[::-1], areas, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("peak_at", np.linspace(20.0, 30.0, 7))
def test_the_true_area_of_a_peak_is_that_of_the_triangle(peak_at):
    """Rising by 1 per step to the peak and falling by 2: the chord leaves out exactly the triangle."""
    knots = np.arange(0.0, 70.0, 10.0)
    rates = np.minimum(knots, peak_at - 2 * (knots - peak_at)) + 100
    at = np.sort(np.append(knots, peak_at))
    true = np.interp(at, at, np.minimum(at, peak_at - 2 * (at - peak_at)) + 100)
    missing = np.diff(at) @ (true[1:] + true[:-1]) / 2 - np.diff(knots) @ (rates[1:] + rates[:-1]) / 2
    assert_allclose(uncertain_areas(knots, rates).sum(), missing, atol=1e-9)


@pytest.mark.parametrize("delay", [0, 1])
def test_a_warmup_from_zero_is_extended_to_the_start(delay):
    """Some trainers log the rate of the last update: the line meets zero at step 1."""
    rates = np.minimum(np.arange(T) / 200, 1.0)
    steps = np.arange(50, T, 50)
    found, notes = schedule_from_rates(steps, rates[steps - delay], T)
    assert not notes
    assert np.abs(found.values() - rates).max() < 2 / 200


def test_what_is_not_logged_at_the_start_is_held_with_a_warning():
    steps = np.arange(100, T, 50)
    found, (note,) = schedule_from_rates(steps, np.full(len(steps), 0.3), T)
    assert (found.values() == 0.3).all()
    assert note[0].startswith("no learning rate is logged before step 100 (10.0% of the run), and 0.3 is assumed")
    assert {Arg("warmup_steps"), Arg("schedule")} < set(note)
    _, notes = schedule_from_rates(np.arange(10, T, 5), np.full(198, 0.3), T)
    assert not notes


def test_a_given_warmup_is_that_of_the_library():
    schedule = ec.warmup(ec.constant(T - 80, 0.3), 80)
    steps = np.arange(100, T, 50)
    found, notes = schedule_from_rates(steps, schedule(steps), T, warmup_steps=80)
    assert not notes
    assert_allclose(found.values(), schedule.values(), rtol=1e-12)


def test_what_is_not_logged_at_the_end_is_held_with_a_warning():
    found, (note,) = schedule_from_rates(np.array([0, 200, 400, 500]), np.array([0.3, 0.22, 0.14, 0.1]), T)
    assert (found.values()[500:] == 0.1).all()
    assert "no learning rate is logged after step 500, but losses up to step 1,000; 0.1 is assumed" in note[0]
    _, notes = schedule_from_rates(np.array([0, 250, 500]), np.array([0.3, 0.3, 0.3]), T)
    assert not notes


def test_a_drop_at_the_end_does_not_continue():
    steps = np.arange(0, 1000, 100)
    rates = np.where(steps < 900, 0.1, 0.01)
    found, notes = schedule_from_rates(steps, rates, 990)
    assert (found.values()[900:] == 0.01).all()
    assert any("after step 900" in note[0] for note in notes)


def test_one_rate_is_a_constant_with_a_warning():
    found, notes = schedule_from_rates(np.array([0]), np.array([0.3]), T)
    assert (found.values() == 0.3).all()
    assert len(notes) == 1


def test_rates_after_the_last_loss_do_not_matter():
    steps, rates = logged(ec.multistep(T, 0.1, [725]), 50)
    found, notes = schedule_from_rates(steps, rates, 500)
    assert not notes
    assert found.total_steps == 500
    assert (found.values() == 0.1).all()
