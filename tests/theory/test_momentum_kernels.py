import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference import quadratic as reference
from tests.reference.problems import pieces, problems, schedules
from tests.reference.short_runs import exact_loss

import eigencurve as ec
from eigencurve.theory.blocks import block_loss_gradient
from eigencurve.theory.momentum_kernels import (
    advance_momentum_blocks,
    direction,
    equal_steps_slope,
    equal_steps_with_momentum,
    loss_by_squares,
    lower_momentum_by_steps,
    next_moments,
    stationary_slope,
)
from eigencurve.theory.recursion import loss_gradient
from eigencurve.theory.stability import largest_stable_rate

MOMENTA = st.floats(0.01, 0.95)


def scale_of(q):
    """The size of a derivative: moments are at most this large, times the eigenvalue."""
    return float(q.spectrum.weights @ (q.spectrum.eigenvalues * (q.noise + q.initial_error))) / (1 - q.momentum) ** 4


@settings(max_examples=30)
@given(q=problems(max_size=3, max_kappa=100, momentum=MOMENTA, nesterov=True), data=st.data())
def test_the_adjoint_is_the_derivative(q, data):
    """The complex step differentiates the literal matrices without cancellation."""
    rates = data.draw(schedules(q.stable_rate, max_steps=30)).values()
    loss, gradient = loss_gradient(q.nodes, rates)
    law = (q.momentum, q.nesterov)
    scale = scale_of(q)
    assert_allclose(loss, reference.momentum_loss(*pieces(q), rates, *law), rtol=1e-10, atol=1e-12 * scale + 1e-280)
    step = 1e-30
    for t in range(len(rates)):
        bumped = [complex(eta, step if i == t else 0.0) for i, eta in enumerate(rates)]
        slope = reference.momentum_loss(*pieces(q), bumped, *law).imag / step
        assert_allclose(gradient[t], slope, rtol=1e-9, atol=1e-11 * scale + 1e-280)


@pytest.mark.parametrize("nesterov", [False, True])
def test_the_adjoint_against_finite_differences(nesterov):
    q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 1e-3, 1.0).spectrum(40), 2.0, 1.0, 0.9, nesterov)
    rates = ec.cosine(1000, 0.8 * q.stable_rate).values()
    _, gradient = loss_gradient(q.nodes, rates)
    for t in (0, 1, 31, 32, 500, 998, 999):
        up, down = rates.copy(), rates.copy()
        up[t] += 1e-5
        down[t] -= 1e-5
        slope = (loss_gradient(q.nodes, up)[0] - loss_gradient(q.nodes, down)[0]) / 2e-5
        # the loss is quadratic in one rate: central differences are exact except for cancellation, 1e-16 / 1e-5
        assert_allclose(gradient[t], slope, rtol=1e-6, atol=1e-10)


@settings(max_examples=40)
@given(q=problems(max_size=4, max_kappa=100, momentum=MOMENTA, nesterov=True), data=st.data())
def test_the_gradient_of_a_block_is_the_sum_over_its_steps(q, data):
    counts = np.array(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=5)))
    shares = data.draw(st.lists(st.floats(1e-3, 1.0), min_size=len(counts), max_size=len(counts)))
    rates = np.array(shares) * q.stable_rate
    loss, gradient = block_loss_gradient(q.nodes, counts, rates)
    exact, slopes = loss_gradient(q.nodes, np.repeat(rates, counts))
    scale = scale_of(q)
    assert_allclose(loss, exact, rtol=1e-10, atol=1e-12 * scale + 1e-280)
    sums = np.add.reduceat(slopes, np.concatenate(([0], np.cumsum(counts)[:-1])))
    assert_allclose(gradient, sums, rtol=1e-9, atol=1e-11 * scale + 1e-280)


@given(share=st.floats(1e-4, 1), count=st.integers(1, 300), m=MOMENTA, nesterov=st.booleans())
def test_equal_steps_are_the_steps(share, count, m, nesterov):
    x = share * largest_stable_rate(1.0, m, nesterov)
    law = (x, m, *direction(m, nesterov))
    start, variance = (2.0, 0.5, 1.0), (0.0, 0.0, 0.0)
    bias = start
    for _ in range(count):
        bias, variance = next_moments(bias, *law, 0.0), next_moments(variance, *law, 1.0)
    power, added, lagged = equal_steps_with_momentum(x, count, *law[1:], (0.0, 0.0, 0.0))
    matrix = np.array(power).reshape(2, 2)
    moved = matrix @ [[start[0], start[1]], [start[1], start[2]]] @ matrix.T
    size = 1 / (1 - m) ** 2
    assert_allclose([moved[0, 0], moved[0, 1], moved[1, 1]], bias, rtol=1e-8, atol=1e-12 * size)
    assert_allclose(added, variance, rtol=1e-8, atol=1e-12 * size)
    assert lagged == (0.0, 0.0, 0.0)
    assert_allclose(equal_steps_slope(x, count, *law[1:])[1], added, rtol=1e-9)


@given(share=st.floats(0.01, 0.95), m=MOMENTA, nesterov=st.booleans())
def test_the_stationary_moments_change_as_stated(share, m, nesterov):
    limit = largest_stable_rate(1.0, m, nesterov)

    def stationary(x):
        p, q = direction(m, nesterov)
        keep, drag = 1 - q * x, p * x
        step = [[keep**2, -2 * keep * drag, drag**2], [keep, keep * m - drag, -m * drag], [1, 2 * m, m * m]]
        return np.linalg.solve(np.eye(3) - step, [q * q * x * x, -q * x, 1.0])

    x, bump = share * limit, 1e-5 * min(share, 1 - share) * limit
    slope = (stationary(x + bump) - stationary(x - bump)) / (2 * bump)
    assert_allclose(stationary_slope(x, m, nesterov), slope, rtol=1e-4, atol=1e-5 / (1 - m) / share)


def variance_after_a_block(x, m, nesterov, steps, rise):
    """Variance of an eigenvalue of 1, from its stationary value, after one block of steps with a mean rate of x."""
    p, q = direction(m, nesterov)
    bias, variance = np.zeros((3, 1)), np.zeros((3, 1))
    for _ in range(20_000):  # to the stationary value of the first rate
        variance[:, 0] = next_moments(tuple(variance[:, 0]), x - rise / 2, m, p, q, 1.0)
    exact = tuple(variance[:, 0])
    for eta in np.linspace(x - rise / 2, x + rise / 2, steps):
        exact = next_moments(exact, eta, m, p, q, 1.0)
    one = np.ones(1)
    advance_momentum_blocks(one, one, m, nesterov, bias, variance, np.array([steps]), np.array([x]), np.array([rise]))
    return variance[0, 0], exact[0]


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.2, (1 - 0.9) / (1 + 0.9), 0.6])
def test_a_block_follows_a_changing_rate(share, nesterov):
    x = share * largest_stable_rate(1.0, 0.9, nesterov)
    found, exact = variance_after_a_block(x, 0.9, nesterov, 100, 0.02 * x)
    at_constant_rate = variance_after_a_block(x, 0.9, nesterov, 100, 0.0)[1]
    assert abs(found - exact) < 0.05 * abs(exact - at_constant_rate)


@pytest.mark.parametrize("nesterov", [False, True])
def test_a_changing_rate_at_the_limit_is_finite(nesterov):
    """The stationary moments are infinite there, so their change is left out."""
    x = largest_stable_rate(1.0, 0.9, nesterov)
    bias, variance = np.zeros((3, 1)), np.zeros((3, 1))
    block = np.array([10]), np.array([x]), np.array([-0.01 * x])
    advance_momentum_blocks(np.ones(1), np.ones(1), 0.9, nesterov, bias, variance, *block)
    assert np.isfinite(variance).all()


@settings(max_examples=40)
@given(q=problems(max_size=4, max_kappa=100, momentum=MOMENTA, nesterov=True), data=st.data())
def test_no_single_rate_lowers_the_loss_after_the_sweeps(q, data):
    """Each rate is the minimum of a parabola, so the loss is no lower on either side of it."""
    max_lr = q.stable_rate
    rates = data.draw(schedules(max_lr, max_steps=6)).values().copy()
    nodes, law = q.nodes, (q.momentum, q.nesterov)
    before = loss_by_squares(*nodes.arrays(), *law, rates)
    loss = lower_momentum_by_steps(*nodes.arrays(), *law, max_lr, rates, 0.0, 2000)
    # what cancels in the moments, whose size is the scale, moves the best rates
    slack = 1e-10 * scale_of(q) / q.spectrum.mu + 1e-280
    # a loss that is zero is a sum of squared rounding errors
    assert_allclose(loss, loss_by_squares(*nodes.arrays(), *law, rates), rtol=1e-12, atol=1e-24 * scale_of(q))
    assert loss <= before + slack
    assert 0 <= rates.min() <= rates.max() <= max_lr
    for t in range(len(rates)):
        for other in (0.0, 0.9 * rates[t], min(1.1 * rates[t], max_lr), max_lr):
            changed = rates.copy()
            changed[t] = other
            assert loss <= loss_by_squares(*nodes.arrays(), *law, changed) * (1 + 1e-6) + slack


@given(q=problems(max_size=4, max_kappa=100, momentum=MOMENTA, nesterov=True), data=st.data())
def test_the_sum_of_squares_is_the_loss(q, data):
    rates = np.array(data.draw(schedules(2 * q.stable_rate, max_steps=20)).values())
    loss = loss_by_squares(*q.nodes.arrays(), q.momentum, q.nesterov, rates)
    assert_allclose(loss, exact_loss(q, rates), rtol=1e-9, atol=1e-280)
    stable = np.minimum(rates, q.stable_rate)
    literal = reference.momentum_loss(*pieces(q), stable, q.momentum, q.nesterov)
    loss = loss_by_squares(*q.nodes.arrays(), q.momentum, q.nesterov, stable)
    assert_allclose(loss, literal, rtol=1e-9, atol=1e-12 * scale_of(q) + 1e-280)
