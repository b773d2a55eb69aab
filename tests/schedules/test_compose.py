import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import eigencurve as ec
from eigencurve.schedules.compose import Part


@given(T=st.integers(1, 50), n=st.integers(0, 50))
def test_warmup_rises_linearly_to_the_schedule_and_then_is_the_schedule(T, n):
    f = ec.cosine(T, 0.8)
    g = ec.warmup(f, n)
    assert g.total_steps == T + n
    assert_array_equal(g.values()[n:], f.values())
    assert_allclose(np.diff(g.values()[: n + 1]), 0.8 / (n + 1), rtol=1e-9)
    assert g(0) > 0


@pytest.mark.parametrize("shape", ["linear", "cosine", "exponential"])
@given(n=st.integers(1, 300))
def test_every_warmup_rises_from_above_zero_to_below_the_schedule(shape, n):
    values = ec.warmup(ec.constant(1, 0.8), n, shape).values()
    assert values[0] > 0
    assert (np.diff(values) > 0).all()
    assert values[-1] == 0.8


def test_warmups_are_their_formulas():
    n, t = 99, np.arange(99)
    cosine = ec.warmup(ec.constant(1, 1.0), n, shape="cosine").values()[:n]
    assert_allclose(cosine, (1 - np.cos(np.pi * (t + 1) / (n + 1))) / 2, rtol=1e-9)
    rises = np.log(ec.warmup(ec.constant(1, 1.0), n, shape="exponential").values())
    assert_allclose(np.diff(rises), np.log(n + 1) / n)
    assert np.exp(rises[0]) == pytest.approx(ec.warmup(ec.constant(1, 1.0), n)(0))


def test_a_saved_warmup_without_a_shape_is_linear():
    settings = ec.warmup(ec.linear(5, 0.1), 3).to_dict()
    del settings["shape"]
    assert ec.schedule_from_dict(settings) == ec.warmup(ec.linear(5, 0.1), 3)


@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_join_runs_every_part_in_full(lengths):
    parts = [ec.linear(T, lr=1.0 + i) for i, T in enumerate(lengths)]
    f = ec.schedules.join(parts)
    assert f.total_steps == sum(lengths)
    assert_array_equal(f.values(), np.concatenate([part.values() for part in parts]))


def test_join_takes_a_hundred_parts():
    assert ec.schedules.join([ec.constant(2, lr=1.0 + i) for i in range(100)])(199) == 100.0


def test_only_schedules_are_composed():
    with pytest.raises(TypeError, match=r"join: 'schedules' must be a Schedule, got 0.1"):
        ec.schedules.join([ec.constant(3, 0.1), 0.1])
    with pytest.raises(TypeError, match="warmup: 'schedule' must be a Schedule"):
        ec.warmup(lambda _: 0.1, 3)
    with pytest.raises(ValueError, match="join: 'schedules' must be at least one schedule"):
        ec.schedules.join([])
    with pytest.raises(ValueError, match="warmup: 'num_steps' must be >= 0, got -1"):
        ec.warmup(ec.constant(3, 0.1), -1)
    with pytest.raises(ValueError, match="warmup: 'shape' must be one of 'linear', 'cosine', 'exponential'"):
        ec.warmup(ec.constant(3, 0.1), 2, shape="quick")


@given(T=st.integers(1, 30), first=st.integers(0, 40), n=st.integers(1, 60))
def test_a_part_holds_the_last_rate_beyond_the_end(T, first, n):
    whole = ec.linear(T, 0.8)
    assert_array_equal(Part(whole, first, n).values(), whole(np.minimum(np.arange(first, first + n), T - 1)))
