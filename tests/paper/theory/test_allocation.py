import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, minimize
from tests.reference.problems import spectra

import eigencurve as ec
from eigencurve.schedules.allocation import variance_term
from paper.theory.allocation import allocate, kkt_residual, marginal_gain, schedule_for

betas = st.sampled_from([1.0001, 1.1, 1.5, 2.0, 3.0, 10.0])


@given(s=spectra(max_size=20, max_kappa=1e7), T=st.integers(1, 10**7), beta=betas)
def test_is_a_verified_optimum_for_any_beta(s, T, beta):
    a = allocate(s, T, beta)
    assert (a.lengths >= 0).all()
    assert_allclose(a.lengths.sum(), T, rtol=1e-12)
    # Lengths are differences of denominators near 1, so they are accurate to about kappa * 1e-16 steps.
    assert a.kkt_residual < 1e-9
    assert -1e-12 <= a.gap < 1e-9
    assert a.value <= allocate(s, T, beta, "sqrt").value * (1 + 1e-12)


@given(s=spectra(max_size=10), T=st.integers(1, 10**5), beta=betas, seed=st.integers(0, 2**31))
def test_no_random_choice_is_better_than_its_gap_allows(s, T, beta, seed):
    best, paper = allocate(s, T, beta), allocate(s, T, beta, "sqrt")
    lengths = np.random.default_rng(seed).dirichlet(np.full(len(best.groups), 0.5)) * T
    value = variance_term(best.groups.share, best.slope, lengths)
    assert best.value <= value * (1 + 1e-9)
    assert paper.value * (1 - paper.gap) <= best.value * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    s = ec.Spectrum(2.0 ** np.arange(7), rng.dirichlet(np.full(7, 0.7)))
    a = allocate(s, 400)
    found = minimize(
        lambda x: variance_term(a.groups.share, a.slope, x), np.full(len(a.groups), 400 / len(a.groups)),
        jac=lambda x: -marginal_gain(a.groups.share, a.slope, x), bounds=[(0, None)] * len(a.groups),
        method="SLSQP", constraints=LinearConstraint(np.ones(len(a.groups)), 400, 400),
        options={"ftol": 1e-15, "maxiter": 1000},
    )  # fmt: skip
    assert a.value <= found.fun * (1 + 1e-10)
    assert_allclose(a.value, found.fun, rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_projected_gradient(seed):
    """A second, different method: multiplicative weights on the simplex, in many small steps."""
    rng = np.random.default_rng(seed)
    s = ec.Spectrum(3.0 ** np.arange(5), rng.dirichlet(np.full(5, 0.7)))
    a = allocate(s, 300)
    x = np.full(len(a.groups), 300 / len(a.groups))
    for _ in range(20000):
        gain = marginal_gain(a.groups.share, a.slope, x)
        x = x * np.exp(0.2 * (gain / gain.max() - 1))
        x *= 300 / x.sum()
    assert a.value <= variance_term(a.groups.share, a.slope, x) * (1 + 1e-12)
    assert_allclose(a.value, variance_term(a.groups.share, a.slope, x), rtol=1e-6)


def test_the_gain_is_the_derivative():
    share, slope, lengths = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.5, 1.0]), np.array([3.0, 0.0, 4.0])
    for i, gain in enumerate(marginal_gain(share, slope, lengths)):
        bump = 1e-6 * (np.arange(3) == i)
        slope_i = (variance_term(share, slope, lengths + bump) - variance_term(share, slope, lengths - bump)) / 2e-6
        assert_allclose(-gain, slope_i, rtol=1e-8)


def test_the_residual_tells_a_bad_choice():
    gain = np.array([2.0, 1.0])
    assert kkt_residual(gain, np.array([10.0, 0.0])) == 0.0
    assert kkt_residual(gain, np.array([5.0, 5.0])) == 0.25


@given(s=spectra(), T=st.integers(1, 2000), kind=st.sampled_from(["sqrt", "optimal"]))
def test_the_schedule_is_eigencurve_at_one_over_l(s, T, kind):
    a = allocate(s, T, allocation=kind)
    f = schedule_for(s, a.lengths)
    if s.kappa > 1:
        assert_allclose(f.values(), ec.eigencurve(s, T, 1 / s.L, allocation=kind).values(), rtol=1e-9)
    else:
        assert_allclose(f.values(), 1 / (s.L * (1 + np.arange(T))), rtol=1e-9)
