import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eigencurve as ec
from eigencurve.schedules import Length, epochs, fraction, steps, tokens
from eigencurve.schedules.units import nearest_step, whole_steps

SPECTRUM = ec.Spectrum([1.0, 2.0, 4.0], [16, 4, 1])
# Every function that takes a length: with a Length on the left, and with the equal number of steps on the right.
PAIRS = [
    (lambda n: ec.constant(n, 0.1), 1000),
    (lambda n: ec.inverse_time(n, 0.1, 0.01), 1000),
    (lambda n: ec.exponential(n, 0.1, 0.01), 1000),
    (lambda n: ec.cosine(n, 0.1), 1000),
    (lambda n: ec.linear(n, 0.1), 1000),
    (lambda n: ec.step_decay(n, 0.1), 1000),
    (lambda n: ec.step_decay(n, 0.1, num_intervals=3), 1000),
    (lambda n: ec.multistep(n, 0.1, [500]), 1000),
    (lambda n: ec.multistep(2000, 0.1, [500, n]), 1000),
    (lambda n: ec.hold_then_decay(n, 0.1, 10, 10, 2.0), 1000),
    (lambda n: ec.hold_then_decay(2000, 0.1, n, 10, 2.0), 1000),
    (lambda n: ec.hold_then_decay(2000, 0.1, 10, n, 2.0), 1000),
    (lambda n: ec.cosine_power(n, 0.1), 1000),
    (lambda n: ec.elastic_step(n, 0.1), 1000),
    (lambda n: ec.eigencurve(SPECTRUM, n, 0.1), 1000),
    (lambda n: ec.eigencurve(SPECTRUM, n, 0.1, rounding="released"), 1000),
    (lambda n: ec.piecewise(n, [0, 1000], [0.1, 0.01]), 1000),
    (lambda n: ec.piecewise(1500, [0, n, 1500], [0.1, 0.01, 0.001]), 1000),
    (lambda n: ec.wsd(n, 0.1, 100, 10), 1000),
    (lambda n: ec.wsd(2000, 0.1, n, 10), 1000),
    (lambda n: ec.wsd(2000, 0.1, 100, n), 1000),
    (lambda n: ec.warmup(ec.cosine(500, 0.1), n), 1000),
]


@pytest.mark.parametrize(("make", "plain"), PAIRS)
def test_every_length_may_be_given_in_other_units(make, plain):
    wanted = make(plain)
    for length in (
        steps(1000),
        epochs(2.5, steps_per_epoch=400),
        tokens(1e6, tokens_per_step=1000),
        tokens(999_700, tokens_per_step=1000),
    ):
        schedule = make(length)
        assert schedule == wanted
        assert ec.schedule_from_dict(json.loads(json.dumps(schedule.to_dict()))) == wanted
        assert all(type(v) is not Length for v in schedule.to_dict().values())


@pytest.mark.parametrize(
    ("given_so", "plain"),
    [
        (ec.multistep(1000, 0.1, [fraction(0.3), fraction(0.6)]), ec.multistep(1000, 0.1, [300, 600])),
        (ec.hold_then_decay(39_100, 0.1, fraction(0.1), fraction(0.05), 2.0),
         ec.hold_then_decay(39_100, 0.1, 3910, 1955, 2.0)),
        (ec.wsd(epochs(10, 100), 0.1, fraction(0.2), fraction(0.01)), ec.wsd(1000, 0.1, 200, 10)),
        (ec.piecewise(100, [0, fraction(0.5), fraction(1)], [3, 2, 1]),
         ec.piecewise(100, [0, 50, 100], [3, 2, 1])),
        (ec.warmup(ec.cosine(900, 0.1), fraction(0.1)), ec.warmup(ec.cosine(900, 0.1), 100)),
        (ec.warmup(ec.cosine(900, 0.1), fraction(0)), ec.warmup(ec.cosine(900, 0.1), 0)),
    ],
)  # fmt: skip
def test_a_fraction_is_of_the_whole_run(given_so, plain):
    assert given_so == plain


@given(st.integers(0, 10**9), st.integers(1, 10**6))
def test_whole_epochs_are_exact(amount, per_epoch):
    assert nearest_step(epochs(amount, per_epoch).exact_steps()) == amount * per_epoch


@given(st.integers(0, 1000), st.integers(1, 10**7))
def test_decimals_are_meant_as_they_are_written(thousandths, total):
    length = fraction(thousandths / 1000)
    assert length.exact_steps(total) == Fraction(thousandths, 1000) * total
    steps = nearest_step(length.exact_steps(total))
    assert abs(steps - Fraction(thousandths, 1000) * total) <= Fraction(1, 2)


@given(st.fractions(0, Fraction(99, 100)), st.integers(1, 10**6))
def test_a_warmup_is_its_fraction_of_the_run_in_all_to_half_a_step(part, rest):
    rise = nearest_step(fraction(part).before(rest).exact_steps())
    assert abs(rise - part * (rest + rise)) <= Fraction(1, 2)


@pytest.mark.parametrize(("exact", "steps"), [("2.5", 3), ("2.4999", 2), ("3.5", 4), ("0.5", 1), ("7", 7)])
def test_rounds_to_the_nearest_step_halves_up(exact, steps):
    assert whole_steps("f", "n", epochs(float(exact), 1), 0) == steps


def test_numbers_of_numpy_do():
    assert whole_steps("f", "n", epochs(np.float64(0.1), np.int64(30)), 0) == 3
    assert whole_steps("f", "n", np.int64(7), 0) == 7


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: ec.cosine(fraction(0.5), 0.1), ValueError, "cosine: 'total_steps' must be in steps, epochs or"),
        (lambda: ec.cosine(steps(0), 0.1), ValueError, "'total_steps' must be >= 1, got 0"),
        (lambda: ec.cosine(10.5, 0.1), TypeError, "'total_steps' must be an integer, got 10.5. Other units: epochs"),
        (lambda: ec.wsd(100, 0.1, 10, fraction(0.001)), ValueError,
         r"wsd: 'warmup_steps' must be 0, or at least half a step, got '0.001 of the run: 0.1 of a step'"),
        (lambda: ec.warmup(ec.cosine(9, 0.1), fraction(1)), ValueError, "< 1 if more steps follow"),
        (lambda: ec.multistep(10, 0.1, [fraction(1)]), ValueError, "'milestones' must be below total_steps = 10"),
        (lambda: fraction(1.5), ValueError, "fraction: 'amount' must be <= 1, got 1.5"),
        (lambda: fraction(-0.5), ValueError, "fraction: 'amount' must be >= 0"),
        (lambda: fraction(Fraction(-1, 2)), ValueError, "fraction: 'amount' must be >= 0"),
        (lambda: epochs(-1, 5), ValueError, "epochs: 'amount' must be >= 0"),
        (lambda: epochs(1, 0), ValueError, "epochs: 'steps_per_epoch' must be >= 1"),
        (lambda: epochs(1, 2.5), TypeError, "epochs: 'steps_per_epoch' must be an integer"),
        (lambda: epochs("3", 5), TypeError, "epochs: 'amount' must be a number"),
        (lambda: epochs(float("inf"), 5), ValueError, "epochs: 'amount' must be finite"),
        (lambda: tokens(1e9, 0), ValueError, "tokens: 'tokens_per_step' must be > 0"),
        (lambda: steps(2.0), TypeError, "steps: 'amount' must be an integer"),
        (lambda: fraction(0.5).exact_steps(), ValueError, "'total' must be given for a fraction"),
    ],
)  # fmt: skip
def test_refuses(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_is_a_frozen_value():
    length = epochs(2, 100)
    assert length == epochs(2.0, 100)
    assert hash(length) == hash(epochs(2, 100))
    assert repr(length) == "2 epochs"
    assert repr(fraction(0.1)) == "0.1 of the run"
    with pytest.raises(AttributeError):
        length.amount = 3
