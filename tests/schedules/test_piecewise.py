import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eigencurve as ec


@given(T=st.integers(1, 300), rates=st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=9))
def test_is_the_line_through_its_knots(T, rates):
    knots = np.linspace(0, max(T - 1, 1), len(rates))
    f = ec.piecewise(T, knots, rates)
    np.testing.assert_allclose(f.values(), np.interp(np.arange(T), knots, rates), rtol=1e-15)
    assert f(0) == f.lr == rates[0]
    assert f(10**9) == f.values()[-1]
    back = ec.schedule_from_dict(json.loads(json.dumps(f.to_dict())))
    assert back == f
    assert (back.values() == f.values()).all()


def test_one_knot_is_constant():
    assert (ec.piecewise(5, [0], [0.3]).values() == 0.3).all()


def test_a_warmup_may_start_at_zero():
    f = ec.piecewise(5, [0, 2, 4], [0.0, 1.0, 0.5])
    assert f.values().tolist() == [0.0, 0.5, 1.0, 0.75, 0.5]
    assert f.lr == 1.0
    with pytest.raises(ValueError, match=r"factor: 'schedule' must be of a first rate above 0, got 0.0. Use the rates"):
        f.factor(3)


def test_is_frozen():
    f = ec.piecewise(5, [0, 4], [1.0, 0.5])
    with pytest.raises(ValueError, match="read-only"):
        f.rates[0] = 2.0
    assert repr(f) == "Piecewise(total_steps=5, lr=1, 2 knots)"


@pytest.mark.parametrize(
    ("T", "knots", "rates", "match"),
    [
        (5, [0, 3], [1.0, 0.5], r"'knots' must be increasing from 0 to at least total_steps - 1 = 4"),
        (5, [1, 4], [1.0, 0.5], r"'knots' must be increasing from 0"),
        (5, [0, 2, 2, 4], [1.0, 0.5, 0.4, 0.3], r"'knots' must be increasing"),
        (5, [0, 4], [1.0], r"'rates' must be as long as 'knots' \(2\), got '1 rates'"),
        (5, [0, 4], [1.0, -0.5], r"'rates' must be >= 0, got -0.5"),
        (5, [0, 4], [0.0, 0.0], r"'rates' must be > 0 at one knot or more"),
        (5, [0, 4], [-1.0, 0.0], r"'rates' must be > 0 at one knot or more"),
        (5, [0, np.nan], [1.0, 0.5], r"'knots' must be finite"),
        (0, [0, 4], [1.0, 0.5], r"piecewise: 'total_steps' must be >= 1"),
    ],
)
def test_refuses_bad_knots_and_rates(T, knots, rates, match):
    with pytest.raises(ValueError, match=match):
        ec.piecewise(T, knots, rates)
