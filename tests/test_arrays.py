"""Read-only arrays, and interpolation between many knots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigencurve._arrays import FEW_KNOTS, frozen, interpolated


def many_knots(size=FEW_KNOTS + 1):
    rng = np.random.default_rng(0)
    return frozen(np.cumsum(rng.exponential(size=size))), frozen(rng.standard_normal(size))


def test_a_frozen_array_is_a_read_only_copy():
    values = np.arange(3)
    copy = frozen(values)
    values[0] = 7
    assert copy.tolist() == [0, 1, 2]
    assert copy.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        copy[0] = 1


@given(st.lists(st.one_of(st.integers(0, FEW_KNOTS), st.floats(-10, 5000)), max_size=6))
def test_interpolation_between_many_knots_equals_numpys_to_the_last_bit(places):
    knots, values = many_knots()
    x = np.array([knots[place] if isinstance(place, int) else place for place in places])
    assert interpolated(x, knots, values).tobytes() == np.interp(x, knots, values).tobytes()


@pytest.mark.parametrize("size", [1, 2, FEW_KNOTS])
def test_few_knots(size):
    knots, values = many_knots(size)
    x = np.linspace(-1, knots[-1] + 1, 50)
    assert interpolated(x, knots, values).tobytes() == np.interp(x, knots, values).tobytes()
