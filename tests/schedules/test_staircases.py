from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference import schedules as reference

import eigencurve as ec
from eigencurve._check import ArgumentValueError


@given(T=st.integers(1, 200), intervals=st.integers(1, 30), factor=st.sampled_from([1.0, 2.0, 5.0, 10.0]))
def test_step_decay_matches_its_transcription(T, intervals, factor):
    assert_allclose(
        ec.step_decay(T, 0.7, intervals, factor).values(), reference.step_decay(T, 0.7, intervals, factor), rtol=1e-15
    )


@pytest.mark.parametrize(("T", "intervals"), [(1, 1), (2, 1), (3, 1), (4, 2), (1023, 9), (1024, 10), (78_200, 16)])
def test_step_decay_has_the_floor_of_log2_T_intervals(T, intervals):
    values = ec.step_decay(T, 1.0).values()
    assert len(np.unique(values)) == intervals
    assert values[-1] == 2.0 ** (1 - intervals)


def test_a_decay_below_the_smallest_float_is_zero_and_no_error():
    assert ec.step_decay(3000, 1.0, num_intervals=3000)(2999) == 0.0
    assert ec.step_decay(3000, 1.0, num_intervals=3000).values()[-1] == 0.0


def test_multistep_decays_at_the_milestone_itself():
    f = ec.multistep(90, 1.0, [30, 60, 80], factor=10.0)
    assert [f(29), f(30), f(59), f(60), f(79), f(80)] == [1.0, 0.1, 0.1, 0.01, 0.01, 0.001]
    assert ec.multistep(90, 0.3, []).values().tolist() == [0.3] * 90


def test_multistep_refuses_fractions_of_a_step():
    with pytest.raises(TypeError, match=r"'milestones' must be an integer, got 30.5"):
        ec.multistep(90, 1.0, [30.5])


def test_hold_then_decay_is_the_language_model_baseline():
    f = ec.hold_then_decay(30 * 10, lr=1.0, hold=14 * 10, every=10, factor=1.15)
    by_epoch = f.values().reshape(30, 10)
    assert (by_epoch == by_epoch[:, :1]).all()
    # eta_0 for the first 14 epochs, eta_0 / 1.15^k for epoch k + 14
    assert_allclose(by_epoch[:, 0], [1.0] * 14 + [1.15**-k for k in range(1, 17)], rtol=1e-15)


def test_one_step_is_a_run():
    assert ec.hold_then_decay(1, 0.1, hold=1, every=1, factor=2.0).values().tolist() == [0.1]
    assert ec.hold_then_decay(1, 0.1, hold=0, every=1, factor=2.0).total_steps == 1


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


def test_more_intervals_than_float64_can_tell_apart_are_refused():
    with pytest.raises(ArgumentValueError) as error:
        ec.step_decay(2**53, 0.1, num_intervals=2000)
    assert (error.value.argument, error.value.value) == ("num_intervals", 2000)


@pytest.mark.parametrize(
    ("make", "settings", "argument", "value"),
    [
        (ec.multistep, {"milestones": [60, 30]}, "milestones", (60, 30)),
        (ec.multistep, {"milestones": [30, 30]}, "milestones", (30, 30)),
        (ec.multistep, {"milestones": [0, 30]}, "milestones", 0),
        (ec.multistep, {"milestones": [30, 100]}, "milestones", 100),
        (ec.step_decay, {"num_intervals": 0}, "num_intervals", 0),
        (ec.step_decay, {"factor": 0.5}, "factor", 0.5),
        (ec.hold_then_decay, {"hold": -1, "every": 1, "factor": 2.0}, "hold", -1),
        (ec.hold_then_decay, {"hold": 1, "every": 0, "factor": 2.0}, "every", 0),
        (ec.elastic_step, {"r": 0.0}, "r", 0.0),
        (ec.elastic_step, {"r": 1.0}, "r", 1.0),
        (ec.elastic_step, {"r": -0.5}, "r", -0.5),
    ],
)
def test_bad_settings_are_refused(make, settings, argument, value):
    with pytest.raises(ArgumentValueError) as error:
        make(100, 0.1, **settings)
    assert (error.value.function, error.value.argument, error.value.value) == (make.__name__, argument, value)
