import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import quadratic as reference

import eigencurve as ec
from eigencurve.theory.stability import largest_stable_rate, stable_rate_formula


def largest_factor(x, m, nesterov):
    """The largest modulus of the eigenvalues of one step's matrix for (w, v), at λ = 1."""
    matrix = [[1 - x * (1 + m), -x * m * m], [1, m]] if nesterov else [[1 - x, -x * m], [1, m]]
    return np.abs(np.linalg.eigvals(matrix)).max()


@given(m=st.floats(0, 0.99), nesterov=st.booleans(), share=st.floats(0.01, 0.999))
def test_below_the_limit_every_error_shrinks_and_above_it_one_grows(m, nesterov, share):
    limit = largest_stable_rate(1.0, m, nesterov)
    assert largest_factor(share * limit, m, nesterov) < 1
    assert largest_factor(limit / share, m, nesterov) > 1


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("m", [0.3, 0.9])
def test_the_loss_shrinks_below_the_limit_and_explodes_above_it(m, nesterov):
    def loss(rate):
        return reference.momentum_loss([4.0], [1.0], [0.0], [1.0], [rate] * 500, m, nesterov)

    limit = largest_stable_rate(4.0, m, nesterov)
    assert loss(0.9 * limit) < 1e-3
    assert loss(1.1 * limit) > 1e3


def test_without_momentum_it_is_two_over_L():
    s = ec.Spectrum([0.5, 4.0], [1, 1])
    assert ec.NoisyQuadratic(s).stable_rate == largest_stable_rate(4.0) == 0.5
    assert ec.NoisyQuadratic(s, momentum=0.9, nesterov=True).stable_rate == pytest.approx(3.8 / 2.8 / 4)


@pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, False), (0.9, False), (0.9, True)])
def test_the_formula_is_the_number(momentum, nesterov):
    text = stable_rate_formula(momentum, nesterov).replace("(1+2m)L", "(1+2*m)*L").replace("2(", "2*(")
    assert eval(text, {"m": momentum, "L": 7.0}) == pytest.approx(largest_stable_rate(7.0, momentum, nesterov))
