import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, minimize

from eigencurve.schedules.allocation import optimal_allocation, round_as_released, sqrt_allocation, variance_term

shares = st.lists(st.floats(1e-6, 1), min_size=1, max_size=15)


def gradient(share, slope, lengths):
    denominators = 1 + np.cumsum(slope * lengths)
    return -slope * np.cumsum((slope * share / denominators**2)[::-1])[::-1]


@given(raw=shares, steps=st.floats(1, 1e8), kappa=st.floats(1.01, 1e7), data=st.data())
def test_the_optimum_satisfies_the_kkt_conditions(raw, steps, kappa, data):
    """All non-empty intervals have the same, smallest partial derivative, which proves the optimum by convexity."""
    share = np.array(raw) / sum(raw)
    gaps = data.draw(st.lists(st.floats(0.01, 1), min_size=len(raw), max_size=len(raw)))
    slope = kappa ** (np.cumsum(gaps) / sum(gaps) - 1)
    lengths = optimal_allocation(share, slope, steps)
    assert (lengths >= 0).all()
    assert_allclose(lengths.sum(), steps, rtol=1e-12)
    g = gradient(share, slope, lengths)
    price = (g * lengths).sum() / steps  # the multiplier
    assert (g >= price * (1 + 1e-6)).all()  # g and price are negative: more time would help no interval
    # Lengths come from differences of denominators near 1, so they are accurate to about kappa * 1e-16 steps.
    used = lengths > 1e-6 * steps
    assert_allclose(g[used], price, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_no_general_solver_finds_anything_better(seed):
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(8, 0.4))
    slope = 2.0 ** -np.arange(8, 0, -1)
    best = variance_term(share, slope, optimal_allocation(share, slope, 500.0))
    found = minimize(
        lambda x: variance_term(share, slope, x), sqrt_allocation(share, 500.0),
        jac=lambda x: gradient(share, slope, x), bounds=[(0, None)] * 8, method="SLSQP",
        constraints=LinearConstraint(np.ones(8), 500.0, 500.0), options={"ftol": 1e-15, "maxiter": 1000},
    )  # fmt: skip
    assert best <= found.fun * (1 + 1e-9)
    assert best <= variance_term(share, slope, sqrt_allocation(share, 500.0)) * (1 + 1e-12)
    assert_allclose(best, found.fun, rtol=1e-5)


@given(raw=shares, extra=st.integers(0, 10**6))
def test_released_rounding_spends_every_step_and_leaves_no_group_out(raw, extra):
    T = len(raw) + extra
    lengths = round_as_released(np.array(raw) / sum(raw), T)
    assert lengths.sum() == T
    assert (lengths >= 1).all()
    assert (lengths == np.rint(lengths)).all()
