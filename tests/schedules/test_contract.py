"""The contract that every schedule fulfils."""

import copy
import json
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eigencurve as ec
from eigencurve.schedules.compose import Part
from eigencurve.schedules.sampling import peak_rate, turning_points

P = ec.spectrum.prepare(ec.Spectrum([-0.1, 0.0, 0.02, 0.5, 30.0], [3, 40, 30, 5, 1]), weight_decay=1e-3)
LAW = ec.PowerLaw(1.5, 1e-3, 50.0)
MAKERS = {
    "constant": lambda T, lr: ec.constant(T, lr),
    "inverse_time": lambda T, lr: ec.inverse_time(T, lr, lr / 100),
    "exponential": lambda T, lr: ec.exponential(T, lr, lr / 100),
    "cosine": lambda T, lr: ec.cosine(T, lr, min_lr=lr / 50),
    "linear": lambda T, lr: ec.linear(T, lr),
    "step_decay": lambda T, lr: ec.step_decay(T, lr),
    "general step decay": lambda T, lr: ec.step_decay(T, lr, num_intervals=5, factor=3.0),
    "multistep": lambda T, lr: ec.multistep(T, lr, [m for m in (2, 5, 50) if m < T]),
    "hold_then_decay": lambda T, lr: ec.hold_then_decay(T, lr, hold=3, every=2, factor=1.15),
    "cosine_power": lambda T, lr: ec.cosine_power(T, lr, alpha=2.0),
    "elastic_step": lambda T, lr: ec.elastic_step(T, lr, r=2**-0.5),
    "polynomial": lambda T, lr: ec.polynomial(T, lr, power=0.9),
    "polynomial, late": lambda T, lr: ec.polynomial(T, lr, min_lr=lr / 9, power=3),
    "inverse_sqrt": lambda T, lr: ec.inverse_sqrt(T, lr, timescale=20),
    "rex": lambda T, lr: ec.rex(T, lr),
    "piecewise": lambda T, lr: ec.piecewise(T, [0, 3000, 2**53], [lr, lr / 3, lr / 9]),
    "eigencurve": lambda T, lr: ec.eigencurve(P, T, lr),
    "eigencurve, last rate": lambda T, lr: ec.eigencurve(P, T, lr, min_lr=lr / 1000),
    "eigencurve, limit": lambda T, lr: ec.eigencurve(P, T, lr, beta=1),
    "eigencurve, optimal": lambda T, lr: ec.eigencurve(P, T, lr, allocation="optimal"),
    "eigencurve, power law": lambda T, lr: ec.eigencurve(LAW, T, lr),
}
COMPOSED = {
    "warmup": lambda T, lr: ec.warmup(ec.cosine(T, lr), 4),
    "join": lambda T, lr: ec.schedules.join([ec.constant(T, lr), ec.linear(T, lr / 2)]),
    "warmup, cosine": lambda T, lr: ec.warmup(ec.rex(T, lr), 5, shape="cosine"),
    "warmup, exponential": lambda T, lr: ec.warmup(ec.linear(T, lr), 5, shape="exponential"),
    "wsd": lambda T, lr: ec.wsd(T + 6, lr, decay_steps=3, warmup_steps=2),
    "wsd, 1-sqrt": lambda T, lr: ec.wsd(T + 6, lr, decay=0.5, tail="1-sqrt"),
    "wsd, exponential": lambda T, lr: ec.wsd(T + 6, lr, decay=0.5, tail="exponential", min_lr=lr / 100),
    "wsd_cycles": lambda T, lr: ec.wsd_cycles(T + 6, lr, num_cycles=2, warmup_steps=1, tail="1-square"),
    "one_cycle": lambda T, lr: ec.one_cycle(T, lr),
    "one_cycle, three phases": lambda T, lr: ec.one_cycle(T, lr, pct_start=0.4, anneal="linear", three_phase=True),
    "cooldown": lambda T, lr: ec.cooldown(ec.wsd_cycles(T, lr), T // 2, 5, shape="1-sqrt"),
    "cooldown, eigencurve": lambda T, lr: ec.cooldown(ec.constant(3, lr), T, 5, "eigencurve", spectrum=P),
    "extend": lambda T, lr: ec.schedules.extend(ec.step_decay(T, lr), T + 9, rewarm=3),
    "over_tokens": lambda T, lr: ec.over_tokens(ec.cosine(T, lr), 100 * T, [(0, 100), (T // 2 + 1, 150)]),
    "part of a warmup": lambda T, lr: Part(ec.warmup(ec.linear(T, lr), 9), 2, 12),
    "over_tokens, warmup": lambda T, lr: ec.over_tokens(ec.warmup(ec.linear(T, lr), 3), 100 * T, 70),
    "nested": lambda T, lr: ec.warmup(ec.schedules.join([ec.eigencurve(P, T, lr), ec.constant(2, lr / 9)]), 0),
}
ALL = {**MAKERS, **COMPOSED}
every_schedule = pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())
plain_schedule = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


@every_schedule
@given(T=st.integers(1, 3000), lr=st.floats(1e-6, 1e3), data=st.data())
def test_is_a_pure_function_of_the_step(make, T, lr, data):
    f = make(T, lr)
    values = f.values()
    assert values.shape == (f.total_steps,)
    assert values.dtype == np.float64
    steps = data.draw(st.lists(st.integers(0, f.total_steps - 1), min_size=1, max_size=5))
    assert [f(t) for t in steps] == [values[t] for t in steps] == list(f(np.array(steps)))
    assert f(f.total_steps + 10) == f(10**12) == values[-1]
    assert f.factor(steps[0]) == values[steps[0]] / values[0]
    assert isinstance(f(0), float)


@every_schedule
@given(T=st.integers(1, 3000), lr=st.floats(1e-6, 1e3))
def test_is_positive_and_at_most_its_peak(make, T, lr):
    values = make(T, lr).values()
    assert (values > 0).all()
    assert (values <= lr * (1 + 1e-12)).all()


@every_schedule
@given(T=st.integers(1, 3000), lr=st.floats(1e-6, 1e3))
def test_is_monotone_between_its_turning_points(make, T, lr):
    f = make(T, lr)
    values = f.values()
    assert peak_rate(f) == values.max()
    edges = np.unique(np.clip([0, *turning_points(f), f.total_steps], 0, f.total_steps))
    for start, stop in pairwise(edges):
        moves = np.diff(values[start:stop])
        assert (moves <= 1e-12 * lr).all() or (moves >= -1e-12 * lr).all()


@plain_schedule
@given(T=st.integers(1, 3000), lr=st.floats(1e-6, 1e3))
def test_begins_at_lr_and_never_rises(make, T, lr):
    values = make(T, lr).values()
    assert values[0] == lr
    assert (np.diff(values) <= 1e-12 * lr).all()


@every_schedule
@given(T=st.integers(1, 300), lr=st.floats(1e-6, 1e3))
def test_round_trips_exactly(make, T, lr):
    f = make(T, lr)
    back = ec.schedule_from_dict(json.loads(json.dumps(f.to_dict())))
    assert back == f
    assert hash(back) == hash(f)
    assert type(back) is type(f)
    np.testing.assert_array_equal(back.values(), f.values())
    for twin in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
        assert twin == f
        np.testing.assert_array_equal(twin.values(), f.values())


@every_schedule
def test_is_frozen_and_readable(make):
    f = make(100, 0.1)
    with pytest.raises(AttributeError):
        f.lr = 1.0
    assert len(repr(f)) < 400
    assert repr(f).split("(")[0] == type(f).__name__
    assert repr(f) in f.describe()
    assert f.preview().startswith(("0.1 ", "0.09"))  # the drawn columns may miss the peak
    assert f != make(100, 0.2)
    assert f != "schedule"


@every_schedule
@pytest.mark.parametrize("step", [-1, np.int64(-5), np.array([3, -1])])
def test_refuses_a_negative_step(make, step):
    with pytest.raises(ValueError, match=r"'step' must be >= 0, got -"):
        make(100, 0.1)(step)


@every_schedule
@pytest.mark.parametrize("step", [1.0, "3", True, None, np.array([0.5])])
def test_refuses_a_step_that_is_no_integer(make, step):
    with pytest.raises(TypeError, match="'step' must be an integer"):
        make(100, 0.1)(step)


@plain_schedule
@pytest.mark.filterwarnings("error")
def test_the_longest_run_neither_overflows_nor_rises(make):
    f = make(2**53, 0.1)
    rates = f(np.array([0, 1, 2**52, 2**53 - 1]))
    assert rates[0] == 0.1
    assert np.isfinite(rates).all()
    assert (np.diff(rates) <= 0).all()


@plain_schedule
@pytest.mark.parametrize(
    ("total_steps", "error"),
    [
        (0, ValueError),
        (-3, ValueError),
        (2**53 + 1, ValueError),
        (10**30, ValueError),
        (10.0, TypeError),
        ("10", TypeError),
        (True, TypeError),
        (None, TypeError),
    ],
)
def test_refuses_a_bad_horizon(make, total_steps, error):
    with pytest.raises(error, match="'total_steps' must be"):
        without_arithmetic(make)(total_steps, 0.1)


def without_arithmetic(make):
    """The same maker, but without the milestones of multistep, which it compares with T."""
    return (lambda T, lr: ec.multistep(T, lr, [])) if make is MAKERS["multistep"] else make


@plain_schedule
@pytest.mark.parametrize("lr", [0.0, -0.1, float("nan"), float("inf")])
def test_refuses_a_bad_rate(make, lr):
    with pytest.raises(ValueError, match=r"'(lr|min_lr|rates)' must be"):
        make(100, lr)
