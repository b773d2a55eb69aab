"""Compiled segments compared with the schedules themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedules.test_contract import ALL, LAW, P

import eigencurve as ec
from eigencurve.schedules import join
from eigencurve.schedules.segments import SMALLEST, breaks, evaluate, segments_of

every_schedule = pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())
# The same kinds, with settings for a long run.
LONG = {
    **ALL,
    "multistep": lambda T, lr: ec.multistep(T, lr, [3, T // 3, T - 2]),
    "hold_then_decay": lambda T, lr: ec.hold_then_decay(T, lr, hold=T // 2, every=T // 100, factor=1.15),
    "piecewise": lambda T, lr: ec.piecewise(T, [0, T // 3, T], [lr, lr / 3, 0.0]),
    "cosine_power": lambda T, lr: ec.cosine_power(T, lr, alpha=0.5),
    "warmup": lambda T, lr: ec.warmup(ec.eigencurve(LAW, T, lr), T // 20),
    "wsd": lambda T, lr: ec.wsd(T, lr, decay_steps=T // 5, warmup_steps=T // 10),
    "elastic_step": lambda T, lr: ec.elastic_step(T, lr, r=2 ** (-1 / 20)),
}
long_schedule = pytest.mark.parametrize("make", LONG.values(), ids=LONG.keys())
STEPS = [make for name, make in LONG.items() if "step" in name or name == "hold_then_decay"]


def relative_error(found, wanted):
    """Values below the smallest normal float32 count as zero."""
    return np.abs(found - wanted) / np.maximum(wanted, SMALLEST) * (np.abs(found - wanted) > SMALLEST)


@every_schedule
@settings(max_examples=30)
@given(T=st.integers(1, 3000), lr=st.floats(1e-6, 1e3), scale=st.sampled_from([1.0, 0.3]))
def test_is_the_schedule_to_float32_at_every_step(make, T, lr, scale):
    f = make(T, lr)
    found = evaluate(segments_of(f, scale), np.arange(f.total_steps + 3), np)
    assert found.dtype == np.float32
    assert relative_error(found, scale * f(np.arange(f.total_steps + 3))).max() <= 2**-22
    ends = [0, f.total_steps - 1]
    np.testing.assert_array_equal(found[ends], (scale * f(np.array(ends))).astype(np.float32))


@long_schedule
def test_loses_nothing_in_a_million_steps(make):
    f = make(10**6, 0.1)
    assert relative_error(evaluate(segments_of(f), np.arange(f.total_steps), np), f.values()).max() <= 2**-22


@long_schedule
def test_is_small_and_right_for_a_hundred_million_steps(make):
    f = make(10**8, 0.1)
    segments = segments_of(f)
    assert segments.nbytes < 200_000
    near = (segments.starts[:, None] + np.arange(-2, 3)).ravel().clip(0, f.total_steps - 1)
    steps = np.append(near, np.random.default_rng(0).integers(0, f.total_steps, 100_000))
    assert relative_error(evaluate(segments, steps, np), f(steps)).max() <= 2**-22


@pytest.mark.parametrize("make", STEPS)
@pytest.mark.parametrize("T", [1000, 10**6, 10**8])
def test_steps_fall_where_the_schedule_says_and_are_exact(make, T):
    f = make(T, 0.1)
    places = breaks(f)
    steps = np.unique(np.concatenate((places, places[1:] - 1, places[:-1] + 1)))
    np.testing.assert_array_equal(evaluate(segments_of(f), steps, np), f(steps).astype(np.float32))


def settings_of_breaks(f):
    """The steps at which a new piece starts, from the settings of the schedule alone."""
    if f.kind in ("step_decay", "multistep", "hold_then_decay", "elastic_step"):
        return np.flatnonzero(np.diff(f.values())) + 1  # a piece has one rate
    if f.kind == "piecewise":
        return np.ceil(f.knots[1:]).astype(int)
    if f.kind == "eigencurve":
        return np.ceil(f.times[1:]).astype(int)
    if f.kind == "warmup":
        return f.num_steps + np.append(0, settings_of_breaks(f.schedule))
    if f.kind == "one_cycle":  # a phase ends at its last step, which need not be whole
        ends = [f.pct_start * f.total_steps - 1, 2 * f.pct_start * f.total_steps - 2][: 2 if f.three_phase else 1]
        return np.maximum(np.floor(ends).astype(int) + 1, 0)
    if f.kind == "part":  # beyond the end of its schedule it holds the last rate
        places = np.append(settings_of_breaks(f.schedule), f.schedule.total_steps)
        return np.maximum(places[places <= f.schedule.total_steps] - f.first, 0)
    if f.kind == "over_tokens":
        shares = f.tokens_before(np.arange(f.total_steps)) / f.budget
        inner = np.searchsorted(settings_of_breaks(f.schedule), f.schedule.total_steps * shares * (1 + 1e-12), "right")
        return np.concatenate((f.starts, np.flatnonzero(np.diff(inner)) + 1))
    if f.kind == "join":
        starts = np.cumsum([0, *(part.total_steps for part in f.schedules)])
        inner = [start + settings_of_breaks(part) for start, part in zip(starts, f.schedules, strict=False)]
        # A break beyond the end of a part is none.
        kept = [places[places < end] for places, end in zip(inner, starts[1:], strict=True)]
        return np.concatenate((starts, *kept))
    return np.zeros(0, dtype=int)


@every_schedule
@given(T=st.integers(1, 400))
def test_breaks_are_where_the_settings_say(make, T):
    f = make(T, 0.1)
    places = np.concatenate(([0, f.total_steps - 1], settings_of_breaks(f)))
    np.testing.assert_array_equal(breaks(f), np.unique(places[places < f.total_steps]))


def test_a_spike_of_one_step_is_not_missed():
    place = 500_001
    f = ec.piecewise(10**6, [0, place - 1, place, place + 1, 10**6], [1.0, 1.0, 0.25, 1.0, 1.0])
    g = join([ec.constant(place, 1.0), ec.constant(1, 0.25), ec.constant(10**6, 1.0)])
    for schedule in (f, g):
        found = evaluate(segments_of(schedule), np.arange(place - 2, place + 3), np)
        np.testing.assert_array_equal(found, [1, 1, 0.25, 1, 1])


def test_rates_that_vanish():
    down = ec.piecewise(10**5, [0, 30_000, 60_000, 10**5 - 1], [0.1, 0.0, 0.0, 0.1])
    rates = evaluate(segments_of(down), np.arange(10**5), np)
    assert not rates[30_000:60_001].any()
    assert relative_error(rates, down.values()).max() <= 2**-22
    halved = ec.hold_then_decay(1000, 0.1, hold=1, every=1, factor=2.0)  # falls below the smallest float32
    assert relative_error(evaluate(segments_of(halved), np.arange(1000), np), halved.values()).max() <= 2**-22


def test_pieces_that_repeat_a_rate_are_one():
    assert len(segments_of(ec.constant(10**8, 0.1)).starts) == 1
    assert len(segments_of(join([ec.constant(10, 0.1), ec.constant(10, 0.1), ec.constant(10, 0.2)])).starts) == 2


def test_steps_outside_have_the_rate_at_the_end():
    segments = segments_of(ec.linear(4, lr=1.0))
    np.testing.assert_array_equal(evaluate(segments, np.array([-5, -1, 4, 2**31 - 1]), np), [1, 1, 0.25, 0.25])


def test_refuses_too_many_steps_or_jumps():
    with pytest.raises(ValueError, match=r"'schedule' must be of at most 2147483647 steps, got 2147483648"):
        segments_of(ec.cosine(2**31, lr=0.1))
    with pytest.raises(ValueError, match=r"'schedule' must be of at most 1,048,576 pieces.*smooth decay"):
        segments_of(ec.hold_then_decay(10**8, lr=0.1, hold=10, every=2, factor=1.000001))
    assert segments_of(ec.eigencurve(P, 2**31 - 1, 0.1)).nbytes < 50_000
