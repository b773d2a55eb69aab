import numpy as np
import pytest
from numpy.testing import assert_allclose

from eigencurve.schedules.tails import TAILS, tail_of

# The weight of the first rate as a function of x = t/n, written once more.
WEIGHTS = {
    "linear": lambda x: 1 - x,
    "cosine": lambda x: (1 + np.cos(np.pi * x)) / 2,
    "1-sqrt": lambda x: 1 - np.sqrt(x),
    "1-square": lambda x: 1 - x * x,
    "sqrt": lambda x: np.sqrt(1 - x),
    "square": lambda x: (1 - x) ** 2,
}


@pytest.mark.parametrize("shape", WEIGHTS)
def test_tails_are_their_formulas(shape):
    values = tail_of("f", "tail", shape, 200, 0.5, 0.1).values()
    assert_allclose(values, 0.1 + 0.4 * WEIGHTS[shape](np.arange(200) / 200), rtol=1e-12)


def test_the_others_reach_their_last_rate_at_the_last_step():
    assert set(TAILS) == {*WEIGHTS, "exponential", "inverse"}
    assert_allclose(np.diff(np.log(tail_of("f", "tail", "exponential", 50, 0.5, 0.1).values())), np.log(0.2) / 49)
    assert_allclose(np.diff(1 / tail_of("f", "tail", "inverse", 50, 0.5, 0.1).values()), 8 / 49)


def test_an_unknown_shape_names_its_argument():
    with pytest.raises(ValueError, match=r"cooldown: 'shape' must be one of 'linear'"):
        tail_of("cooldown", "shape", "slow", 5, 0.5, 0.0)
    with pytest.raises(ValueError, match=r"cooldown: 'min_lr' must be > 0 with shape='inverse'"):
        tail_of("cooldown", "shape", "inverse", 5, 0.5, 0.0)
