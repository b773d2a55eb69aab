"""The loops with and without momentum, which answer the same questions; each one's own formulas are tested apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference import quadratic as reference
from tests.reference.problems import pieces, powers, problems, schedules

import eigencurve as ec
from eigencurve.theory.blocks import block_loss_gradient
from eigencurve.theory.kernels import SHORTEST_RUN, advance_greedy, best_rate, equal_steps
from eigencurve.theory.momentum_kernels import loss_by_squares
from eigencurve.theory.recursion import loss_gradient

MOMENTA = st.floats(0.01, 0.95)


def every_law(max_size):
    with_momentum = problems(max_size, max_kappa=100, momentum=MOMENTA, nesterov=True)
    return st.one_of(problems(max_size), problems(max_size, power=powers), with_momentum)


def scale_of(q):
    """The size of a derivative: moments are at most this large, times the eigenvalue."""
    noise = q.noise * q.stable_rate**q.noise_power
    return float(q.spectrum.weights @ (q.spectrum.eigenvalues * (noise + q.initial_error))) / (1 - q.momentum) ** 4


def literal_loss(q, rates):
    if q.momentum:
        return reference.momentum_loss(*pieces(q), rates, q.momentum, q.nesterov)
    return sum(reference.parts(*pieces(q), rates, number=complex, power=q.noise_power))


def exact_loss(q, rates):
    """The loss, with momentum as a sum in which nothing cancels."""
    return loss_by_squares(q.nodes.problem(), rates) if q.momentum else loss_gradient(q.nodes, rates)[0]


@given(x=st.one_of(st.floats(1e-8, 2), st.sampled_from([0.0, 1.0, 2.0, 2 - 1e-9])), count=st.integers(1, 500))
def test_equal_steps_in_closed_form(x, count):
    keep, added = np.longdouble(1), np.longdouble(0)
    for _ in range(count):
        keep, added = (1 - np.longdouble(x)) ** 2 * keep, (1 - np.longdouble(x)) ** 2 * added + np.longdouble(x) ** 2
    log_keep, lost, mine = equal_steps(x, count)
    assert_allclose(np.exp(log_keep), float(keep), rtol=1e-11, atol=1e-300)
    assert_allclose(lost, float(1 - keep), rtol=1e-11, atol=1e-15)
    assert_allclose(mine, float(added), rtol=1e-11)


@pytest.mark.parametrize("count", [SHORTEST_RUN - 1, SHORTEST_RUN, SHORTEST_RUN + 1])
def test_short_and_long_runs_of_equal_rates_meet(count):
    q = ec.NoisyQuadratic(ec.Spectrum([0.01, 0.5, 2.0], [5, 3, 1]), 3.0, 1.0)
    f = ec.constant(count, 0.9)
    assert_allclose(q.expected_loss(f), sum(reference.parts(*pieces(q), f.values())), rtol=1e-13)


@settings(max_examples=60)
@given(q=every_law(max_size=3), data=st.data())
def test_the_adjoint_is_the_derivative(q, data):
    """The complex step differentiates the literal loop without cancellation."""
    rates = data.draw(schedules(q.stable_rate, max_steps=30)).values()
    rates = np.maximum(rates, 1e-6 / q.spectrum.L)  # a complex power has no derivative at 0
    loss, gradient = loss_gradient(q.nodes, rates)
    scale, step = scale_of(q), 1e-30
    assert_allclose(loss, literal_loss(q, rates).real, rtol=1e-10, atol=1e-12 * scale + 1e-280)
    for t in range(len(rates)):
        bumped = [complex(eta, step if i == t else 0.0) for i, eta in enumerate(rates)]
        assert_allclose(gradient[t], literal_loss(q, bumped).imag / step, rtol=1e-9, atol=1e-11 * scale + 1e-280)


@pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, False), (0.9, False), (0.9, True)])
def test_the_adjoint_against_finite_differences(momentum, nesterov):
    q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 1e-3, 1.0).spectrum(40), 2.0, 1.0, momentum, nesterov)
    rates = ec.cosine(1000, 0.8 * q.stable_rate).values()
    _, gradient = loss_gradient(q.nodes, rates)
    for t in (0, 1, 31, 32, 500, 998, 999):
        up, down = rates.copy(), rates.copy()
        up[t] += 1e-5
        down[t] -= 1e-5
        slope = (loss_gradient(q.nodes, up)[0] - loss_gradient(q.nodes, down)[0]) / 2e-5
        # the loss is quadratic in one rate: central differences are exact except for cancellation, 1e-16 / 1e-5
        assert_allclose(gradient[t], slope, rtol=1e-6, atol=1e-10)


@settings(max_examples=60)
@given(q=every_law(max_size=4), data=st.data())
def test_the_gradient_of_a_block_is_the_sum_over_its_steps(q, data):
    counts = np.array(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=5)))
    shares = data.draw(st.lists(st.floats(1e-3, 1.0), min_size=len(counts), max_size=len(counts)))
    rates = np.array(shares) * q.stable_rate
    loss, gradient = block_loss_gradient(q.nodes, counts, rates)
    exact, slopes = loss_gradient(q.nodes, np.repeat(rates, counts))
    assert_allclose(loss, exact, rtol=1e-9, atol=1e-12 * scale_of(q) * (q.momentum > 0) + 1e-280)
    sums = np.add.reduceat(slopes, np.concatenate(([0], np.cumsum(counts)[:-1])))
    # without momentum: near x = 2 the closed form subtracts numbers that are 1/(2 - x) times as large as the result
    precision = 1e-9 if q.momentum else 1e-6
    assert_allclose(gradient, sums, rtol=precision, atol=0.1 * precision * scale_of(q) + 1e-280)


@pytest.mark.parametrize("power", [0.0, 0.25, 1.0, 4.0])
def test_a_rate_of_zero_moves_nothing(power):
    """η^p is 1 for p = 0 and 0 otherwise; the loss only falls with the rate, by λ e."""
    nodes = ec.NoisyQuadratic(ec.Spectrum([0.5, 2.0], [1, 3]), 3.0, [1.0, 5.0], noise_power=power).nodes
    for loss, gradient in (loss_gradient(nodes, np.zeros(3)), block_loss_gradient(nodes, np.array([7]), np.zeros(1))):
        assert loss == 2.0
        slope = -float(nodes.weights @ (nodes.lam * nodes.error)) * (7 if len(gradient) == 1 else 1)
        assert_allclose(gradient, slope)


@settings(max_examples=80)
@given(q=every_law(max_size=4), data=st.data())
def test_no_single_rate_lowers_the_loss_after_the_sweeps(q, data):
    """Each rate is the minimum of a convex function, so the loss is no lower on either side of it."""
    max_lr = q.stable_rate if q.momentum else 3 / q.spectrum.L
    rates = data.draw(schedules(max_lr, max_steps=6)).values().copy()
    before = exact_loss(q, rates)
    loss = q.nodes.kernels.lower_by_steps(q.nodes.problem(), max_lr, rates, 0.0, 2000)
    # with momentum, what cancels in the moments, whose size is the scale, moves the best rates
    slack = (1e-10 * scale_of(q) / q.spectrum.mu if q.momentum else 1e-12 * before) + 1e-280
    assert_allclose(loss, exact_loss(q, rates), rtol=1e-9, atol=1e-24 * scale_of(q) if q.momentum else slack)
    assert loss <= before + slack
    assert 0 <= rates.min() <= rates.max() <= max_lr
    for t in range(len(rates)):
        for other in (0.0, 0.9 * rates[t], min(1.1 * rates[t], max_lr), max_lr):
            changed = rates.copy()
            changed[t] = other
            # the sweeps end when rounding hides what is left to gain
            assert loss <= exact_loss(q, changed) * (1 + 1e-6) + slack


@given(
    a=st.floats(0, 1e3), b=st.floats(1e-3, 1e3), c=st.floats(0, 1e3), power=st.one_of(st.just(0.0), powers),
    largest=st.floats(1e-3, 1e3),
)  # fmt: skip
def test_the_best_rate_is_where_the_derivative_is_zero(a, b, c, power, largest):
    eta = best_rate(a, b, c, power, largest)
    low, high = 0.0, largest
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if b * middle + (1 + power / 2) * c * middle ** (1 + power) < a else (low, middle)
    assert_allclose(eta, low, rtol=1e-9, atol=1e-12 * largest)


@settings(max_examples=60)
@given(
    power=powers,
    error=st.one_of(st.just(0.0), st.floats(-12, 12).map(lambda u: 10**u)),
    noise=st.one_of(st.just(0.0), st.floats(-12, 12).map(lambda u: 10**u)),
)
def test_the_greedy_step_is_a_tight_lower_bound(power, error, noise):
    """Against a dense grid in x, refined four times around its best point; the objective is convex."""
    low, high = 0.0, 1.0
    best = np.inf
    for _ in range(5):
        x = np.linspace(low, high, 2001)
        values = (1 - x) ** 2 * error + x ** (2 + power) * noise
        best, at = values.min(), int(np.argmin(values))
        low, high = x[max(at - 1, 0)], x[min(at + 1, 2000)]
    mine = np.array([error])
    advance_greedy(mine, np.array([noise]), power, np.array([1]))
    assert mine[0] <= best
    # eight units of rounding, and that of the grid
    assert_allclose(mine[0], best, rtol=1e-14, atol=1e-30 * error)


def test_greedy_steps_that_gain_nothing_keep_the_error():
    error = np.array([1e-300, 1e-310, 0.0])
    advance_greedy(error, np.array([1.0, 1.0, 1.0]), 4.0, np.array([10, 10, 10]))
    assert error.tolist() == [1e-300, 1e-310, 0.0]
