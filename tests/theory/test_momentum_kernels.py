import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference.problems import problems, schedules
from tests.reference.short_runs import exact_loss
from tests.theory.test_kernels import MOMENTA, literal_loss, scale_of

import eigencurve as ec
from eigencurve.theory.momentum_kernels import (
    advance,
    direction,
    equal_steps,
    equal_steps_slope,
    loss_by_squares,
    next_moments,
    stationary_slope,
)
from eigencurve.theory.stability import largest_stable_rate


@given(share=st.floats(1e-4, 1), count=st.integers(1, 300), m=MOMENTA, nesterov=st.booleans())
def test_equal_steps_are_the_steps(share, count, m, nesterov):
    x = share * largest_stable_rate(1.0, m, nesterov)
    law = (x, m, *direction(m, nesterov))
    start, variance = (2.0, 0.5, 1.0), (0.0, 0.0, 0.0)
    bias = start
    for _ in range(count):
        bias, variance = next_moments(bias, *law, 0.0), next_moments(variance, *law, 1.0)
    power, added, lagged = equal_steps(x, count, *law[1:], (0.0, 0.0, 0.0))
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


def after_a_block(variance, x, nesterov, steps, rise):
    """``variance`` of an eigenvalue of 1 after one block of steps with a mean rate of x and momentum 0.9."""
    problem = ec.NoisyQuadratic(ec.Spectrum([1.0], [1]), 1.0, 0.0, 0.9, nesterov).nodes.problem()
    variance = np.array(variance, dtype=float).reshape(3, 1)
    advance(problem, np.zeros((3, 1)), variance, np.array([steps]), np.array([x]), np.array([rise]))
    return variance[:, 0]


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.2, (1 - 0.9) / (1 + 0.9), 0.6])
def test_a_block_follows_a_changing_rate(share, nesterov):
    x = share * largest_stable_rate(1.0, 0.9, nesterov)
    rise, law = 0.02 * x, (0.9, *direction(0.9, nesterov), 1.0)
    start = after_a_block([0, 0, 0], x - rise / 2, nesterov, 20_000, 0.0)  # the stationary value of the first rate
    exact = constant = tuple(start)
    for eta in np.linspace(x - rise / 2, x + rise / 2, 100):
        exact, constant = next_moments(exact, eta, *law), next_moments(constant, x, *law)
    found = after_a_block(start, x, nesterov, 100, rise)
    assert abs(found[0] - exact[0]) < 0.05 * abs(exact[0] - constant[0])


@pytest.mark.parametrize("nesterov", [False, True])
def test_a_changing_rate_at_the_limit_is_finite(nesterov):
    """The stationary moments are infinite there, so their change is left out."""
    x = largest_stable_rate(1.0, 0.9, nesterov)
    assert np.isfinite(after_a_block([0, 0, 0], x, nesterov, 10, -0.01 * x)).all()


@given(q=problems(max_size=4, max_kappa=100, momentum=MOMENTA, nesterov=True), data=st.data())
def test_the_sum_of_squares_is_the_loss(q, data):
    rates = np.array(data.draw(schedules(2 * q.stable_rate, max_steps=20)).values())
    assert_allclose(loss_by_squares(q.nodes.problem(), rates), exact_loss(q, rates), rtol=1e-9, atol=1e-280)
    stable = np.minimum(rates, q.stable_rate)
    loss = loss_by_squares(q.nodes.problem(), stable)
    assert_allclose(loss, literal_loss(q, stable), rtol=1e-9, atol=1e-12 * scale_of(q) + 1e-280)
