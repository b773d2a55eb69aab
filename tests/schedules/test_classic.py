from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tests.reference import schedules as reference

import eigencurve as ec

horizons = st.integers(2, 400)
rates = st.floats(1e-4, 10)


@given(T=horizons, lr=rates, ratio=st.floats(1e-6, 1))
def test_inverse_time_and_exponential_match_their_transcription_and_end_at_min_lr(T, lr, ratio):
    for make, literal in ((ec.inverse_time, reference.inverse_time), (ec.exponential, reference.exponential)):
        f = make(T, lr, lr * ratio)
        # The transcription multiplies a rounded gamma T times.
        assert_allclose(f.values(), literal(T, lr, lr * ratio), rtol=1e-11)
        assert_allclose(f(T - 1), lr * ratio, rtol=1e-15)


@given(T=st.integers(1, 400), lr=rates, ratio=st.floats(0, 1), alpha=st.sampled_from([0.5, 1.0, 2.0, 3.3]))
def test_cosine_and_its_powers_match_their_transcription(T, lr, ratio, alpha):
    literal = reference.cosine_power(T, lr, lr * ratio, alpha)
    assert_allclose(ec.cosine_power(T, lr, lr * ratio, alpha).values(), literal, rtol=1e-12, atol=1e-15 * lr)
    assert_array_equal(ec.cosine(T, lr, lr * ratio).values(), ec.cosine_power(T, lr, lr * ratio, alpha=1.0).values())


def test_cosine_power_agrees_with_optax():
    optax = pytest.importorskip("optax", reason="optax is not installed")
    for alpha in (0.5, 1.0, 2.0):
        other = optax.cosine_decay_schedule(init_value=0.3, decay_steps=500, alpha=0.1, exponent=alpha)
        ours = ec.cosine_power(500, lr=0.3, min_lr=0.03, alpha=alpha)
        # optax computes in float32.
        assert_allclose(ours.values(), [float(other(t)) for t in range(500)], rtol=2e-5)


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


@pytest.mark.parametrize(
    ("milestones", "match"),
    [
        ([60, 30], "'milestones' must be strictly increasing"),
        ([30, 30], "strictly increasing"),
        ([0, 30], ">= 1, got 0"),
        ([30, 90], "below total_steps = 90, got 90"),
    ],
)
def test_multistep_refuses_milestones(milestones, match):
    with pytest.raises(ValueError, match=match):
        ec.multistep(90, 1.0, milestones)


def test_multistep_refuses_fractions_of_a_step():
    with pytest.raises(TypeError, match=r"'milestones' must be an integer, got 30.5"):
        ec.multistep(90, 1.0, [30.5])


def test_hold_then_decay_is_the_language_model_baseline():
    f = ec.hold_then_decay(30 * 10, lr=1.0, hold=14 * 10, every=10, factor=1.15)
    by_epoch = f.values().reshape(30, 10)
    assert (by_epoch == by_epoch[:, :1]).all()
    # eta_0 for the first 14 epochs, eta_0 / 1.15^k for epoch k + 14
    assert_allclose(by_epoch[:, 0], [1.0] * 14 + [1.15**-k for k in range(1, 17)], rtol=1e-15)


def test_linear_falls_by_equal_amounts():
    assert_allclose(np.diff(ec.linear(50, 1.0, min_lr=0.2).values()), -0.8 / 50, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: ec.cosine(10, 0.1, min_lr=0.2), r"cosine: 'min_lr' must be <= lr = 0.1, got 0.2"),
        (lambda: ec.cosine(10, 0.1, min_lr=-0.2), r"cosine: 'min_lr' must be >= 0, got -0.2"),
        (lambda: ec.linear(10, 0.1, min_lr=0.2), r"linear: 'min_lr' must be <= lr"),
        (lambda: ec.inverse_time(10, 0.1, 0.2), r"inverse_time: 'min_lr' must be <= lr"),
        (lambda: ec.inverse_time(10, 0.1, 0.0), r"'min_lr' must be > 0, got 0.0. This decay never reaches 0"),
        (lambda: ec.exponential(10, 0.1, 0.0), r"exponential: 'min_lr' must be > 0"),
        (
            lambda: ec.inverse_time(10, 0.1, 1e-320),
            r"inverse_time: 'min_lr' must be at least 5\.6e-310 for lr = 0.1, got 1e-320",
        ),
        (lambda: ec.exponential(10, 1e10, 1e-320), r"exponential: 'min_lr' must be at least 5\.6e-299 for lr = 1e\+10"),
        (
            lambda: ec.step_decay(2**53, 0.1, num_intervals=2000),
            r"step_decay: 'num_intervals' must be <= 1023 for .* got 2000",
        ),
        (lambda: ec.step_decay(10, 0.1, num_intervals=0), r"step_decay: 'num_intervals' must be >= 1, got 0"),
        (lambda: ec.step_decay(10, 0.1, factor=0.5), r"step_decay: 'factor' must be >= 1, got 0.5"),
        (lambda: ec.hold_then_decay(10, 0.1, hold=-1, every=1, factor=2.0), r"'hold' must be >= 0"),
        (lambda: ec.hold_then_decay(10, 0.1, hold=1, every=0, factor=2.0), r"'every' must be >= 1"),
    ],
)
def test_refuses_bad_settings(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_fractions_of_the_reference_are_exact():
    assert reference.step_decay(7, 1.0, 3, 2) == [1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    assert Fraction(7, 3) > 2


@pytest.mark.filterwarnings("error")
def test_the_smallest_last_rate_still_gives_a_decreasing_curve():
    for make in (ec.inverse_time, ec.exponential):
        rates = make(100, 0.1, 1e-309).values()
        assert np.isfinite(rates).all()
        assert (np.diff(rates) < 0).all()
        np.testing.assert_allclose(rates[[0, -1]], [0.1, 1e-309], rtol=1e-12)


def test_one_step_is_a_run():
    assert ec.hold_then_decay(1, 0.1, hold=1, every=1, factor=2.0).values().tolist() == [0.1]
    assert ec.hold_then_decay(1, 0.1, hold=0, every=1, factor=2.0).total_steps == 1
