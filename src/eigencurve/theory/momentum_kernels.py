r"""The loops of SGD with momentum over steps, or blocks of steps, and eigenvalues, compiled by numba.

All kernels follow the moments E[u²], E[uz] and E[z²] of each eigenvalue, where :math:`u = \sqrt\lambda(w-w_*)` and z
is the velocity divided by :math:`\sqrt\lambda`. With :math:`x = \eta\lambda` and noise ξ of variance σ², a step is

.. math:: z \leftarrow mz + u - \xi, \qquad u \leftarrow u - x\,z \;\text{(heavy ball)}, \qquad
          u \leftarrow u - x\,(u - \xi + mz) \;\text{(Nesterov, with the new z)}

In terms of the old z, both are :math:`u \leftarrow u - x\,(pz + q(u-\xi))` with p = m, q = 1 for heavy ball and
p = m², q = 1 + m for Nesterov.

The kernels have the names and arguments of :mod:`eigencurve.theory.kernels`. The rows of a state are the three moments.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from eigencurve._arrays import Array, IntArray
from eigencurve.theory.kernels import SMALLEST, SMALLEST_LAG, Problem, compiled

# Rows of a state.
NUM_MOMENTS = 3

Moments: TypeAlias = tuple[float, float, float]
Matrix: TypeAlias = tuple[float, float, float, float]


@compiled(fast=True)
def direction(momentum: float, nesterov: bool) -> tuple[float, float]:
    """The weights p of the velocity and q of the gradient in a step."""
    return (momentum * momentum, 1 + momentum) if nesterov else (momentum, 1.0)


@compiled(fast=True)
def moments_of(state: Array, j: int) -> Moments:
    """Column j of a state: the moments of eigenvalue j, or the derivatives in them."""
    return state[0, j], state[1, j], state[2, j]


@compiled(fast=True)
def store(state: Array, j: int, moments: Moments) -> None:
    """Set column j of a state."""
    state[0, j], state[1, j], state[2, j] = moments


@compiled(fast=True)
def flushed(moments: Moments) -> Moments:
    """``moments``, or zeros if they are subnormal."""
    a, b, c = moments
    small = a + c < SMALLEST
    return (0.0 if small else a), (0.0 if small else b), (0.0 if small else c)


@compiled(fast=True)
def transported(s: Matrix, moments: Moments) -> Moments:
    r"""The moments after the linear map :math:`S`: :math:`SVS^\top`, with V the symmetric matrix of the moments."""
    a, b, c = moments
    return (
        s[0] * s[0] * a + 2 * s[0] * s[1] * b + s[1] * s[1] * c,
        s[0] * s[2] * a + (s[0] * s[3] + s[1] * s[2]) * b + s[1] * s[3] * c,
        s[2] * s[2] * a + 2 * s[2] * s[3] * b + s[3] * s[3] * c,
    )


@compiled(fast=True)
def transport_slope(s: Matrix, slope: Matrix, moments: Moments) -> Moments:
    r"""The derivative :math:`S'VS^\top + SVS'^\top` of :func:`transported` for constant moments."""
    a, b, c = moments
    cross = slope[0] * s[3] + s[0] * slope[3] + slope[1] * s[2] + s[1] * slope[2]
    return (
        2 * (s[0] * slope[0] * a + (slope[0] * s[1] + s[0] * slope[1]) * b + s[1] * slope[1] * c),
        (slope[0] * s[2] + s[0] * slope[2]) * a + cross * b + (slope[1] * s[3] + s[1] * slope[3]) * c,
        2 * (s[2] * slope[2] * a + (slope[2] * s[3] + s[2] * slope[3]) * b + s[3] * slope[3] * c),
    )


@compiled(fast=True)
def pulled_back(s: Matrix, adjoint: Moments) -> Moments:
    """The adjoint of :func:`transported`: derivatives in the moments before the map, from those after it."""
    a, b, c = adjoint
    return (
        s[0] * s[0] * a + s[0] * s[2] * b + s[2] * s[2] * c,
        2 * s[0] * s[1] * a + (s[0] * s[3] + s[1] * s[2]) * b + 2 * s[2] * s[3] * c,
        s[1] * s[1] * a + s[1] * s[3] * b + s[3] * s[3] * c,
    )


@compiled(fast=True)
def row_times(s: Matrix, first: float, second: float) -> tuple[float, float]:
    """The row (first, second) times the matrix."""
    return first * s[0] + second * s[2], first * s[1] + second * s[3]


@compiled(fast=True)
def plus(left: Moments, right: Moments) -> Moments:
    """The sum."""
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]


@compiled(fast=True)
def times(scale: float, moments: Moments) -> Moments:
    """The multiple."""
    return scale * moments[0], scale * moments[1], scale * moments[2]


@compiled(fast=True)
def product(s: Matrix, t: Matrix) -> Matrix:
    """The matrix product."""
    return (
        s[0] * t[0] + s[1] * t[2],
        s[0] * t[1] + s[1] * t[3],
        s[2] * t[0] + s[3] * t[2],
        s[2] * t[1] + s[3] * t[3],
    )


@compiled(fast=True)
def product_and_slope(s: Matrix, slope_s: Matrix, t: Matrix, slope_t: Matrix) -> tuple[Matrix, Matrix]:
    """The matrix product and its derivative, from the derivatives of the factors."""
    left, right = product(slope_s, t), product(s, slope_t)
    return product(s, t), (left[0] + right[0], left[1] + right[1], left[2] + right[2], left[3] + right[3])


@compiled(fast=True)
def step_matrix(x: float, m: float, p: float, q: float) -> Matrix:
    """The matrix of one step for (u, z)."""
    return 1 - q * x, -p * x, 1.0, m


@compiled(fast=True)
def next_moments(moments: Moments, x: float, m: float, p: float, q: float, noise: float) -> Moments:
    """The moments after one step."""
    a, b, c = transported(step_matrix(x, m, p, q), moments)
    return a + q * q * x * x * noise, b - q * x * noise, c + noise


@compiled(fast=True)
def stationary_slope(x: float, m: float, nesterov: bool) -> Moments:
    r"""The derivative in x of the stationary moments of a constant rate, divided by σ².

    .. math:: \frac{1}{D}\,\bigl(x(1+m+km(1+2m)x),\; -hx,\; 2\bigr), \qquad D = (1-m+kmx)\,(2(1+m)-hx)

    with h = 1, k = 0 for heavy ball and h = 1 + 2m, k = 1 for Nesterov.
    """
    h, k = (1 + 2 * m, m) if nesterov else (1.0, 0.0)
    left, right = 1 - m + k * x, 2 * (1 + m) - h * x
    bottom = left * right
    change = (k * right - h * left) / bottom
    a = x * (1 + m + k * (1 + 2 * m) * x)
    return (
        (1 + m + 2 * k * (1 + 2 * m) * x - a * change) / bottom,
        -h * (1 - x * change) / bottom,
        -2 * change / bottom,
    )


@compiled(fast=True)
def equal_steps(x: float, count: int, m: float, p: float, q: float, delta: Moments) -> tuple[Matrix, Moments, Moments]:
    r"""The effect of n equal steps: :math:`A^n`, and the sums :math:`\sum_{i<n} A^iQA^{i\top}` for Q and for ``delta``.

    Q is the covariance of one step's noise, divided by σ². Powers and sums are doubled from the highest bit of n
    downwards,

    .. math:: A^{2n} = A^nA^n, \qquad V_{2n} = V_n + A^nV_nA^{n\top}

    with one more step for each bit that is set. All terms of the sum for Q are positive definite, so nothing cancels,
    and the result is exact at the largest stable rate, too.
    """
    one = step_matrix(x, m, p, q)
    power, added, lagged = one, (q * q * x * x, -q * x, 1.0), delta
    bit = 1
    while 2 * bit <= count:
        bit *= 2
    while bit > 1:
        bit //= 2
        added = plus(added, transported(power, added))
        lagged = plus(lagged, transported(power, lagged))
        power = product(power, power)
        if count & bit:
            added = next_moments(added, x, m, p, q, 1.0)
            lagged = plus(delta, transported(one, lagged))
            power = product(one, power)
    return power, added, lagged


@compiled(fast=True)
def equal_steps_slope(x: float, count: int, m: float, p: float, q: float) -> tuple[Matrix, Moments, Matrix, Moments]:
    """The power and the sum for Q of :func:`equal_steps`, and the derivatives of both in x."""
    one, one_slope = step_matrix(x, m, p, q), (-q, -p, 0.0, 0.0)
    first, first_slope = (q * q * x * x, -q * x, 1.0), (2 * q * q * x, -q, 0.0)
    power, added, power_slope, added_slope = one, first, one_slope, first_slope
    bit = 1
    while 2 * bit <= count:
        bit *= 2
    while bit > 1:
        bit //= 2
        moved = plus(transport_slope(power, power_slope, added), transported(power, added_slope))
        added, added_slope = plus(added, transported(power, added)), plus(added_slope, moved)
        power, power_slope = product_and_slope(power, power_slope, power, power_slope)
        if count & bit:
            moved = plus(transport_slope(one, one_slope, added), transported(one, added_slope))
            added, added_slope = plus(first, transported(one, added)), plus(first_slope, moved)
            power, power_slope = product_and_slope(one, one_slope, power, power_slope)
    return power, added, power_slope, added_slope


@compiled(fast=False)
def advance(problem: Problem, bias: Array, variance: Array, counts: IntArray, rates: Array, rises: Array) -> None:
    r"""Take the bias and variance parts of every eigenvalue's moments through blocks of steps, in place.

    .. math:: V \leftarrow A^n V A^{n\top} + \sigma^2\Bigl[\sum_{i<n} A^iQA^{i\top} + \tfrac{n-1}2(\Delta +
              A^n\Delta A^{n\top}) - \sum_{0<i<n} A^i\Delta A^{i\top}\Bigr]

    for a block of n steps with the matrix A and the noise covariance σ²Q of one step at the block's mean rate. The
    stationary covariance of a constant rate (divided by σ²) rises by Δ per step. This follows from
    :math:`V_{t+1} - \sigma^2 G_t = A(V_t - \sigma^2 G_t)A^\top`, which is exact. It neglects the change of A and Δ
    within a block. See :func:`eigencurve.theory.kernels.advance` for the arguments.
    """
    lam, noise, m, nesterov = problem.lam, problem.noise, problem.momentum, problem.nesterov
    p, q = direction(m, nesterov)
    limit = 2 * (1 + m) / (1 + 2 * m if nesterov else 1.0)
    for block in range(len(counts)):
        n, eta = counts[block], rates[block]
        if n == 1:
            for j in range(len(lam)):
                x = eta * lam[j]
                store(bias, j, flushed(next_moments(moments_of(bias, j), x, m, p, q, 0.0)))
                store(variance, j, next_moments(moments_of(variance, j), x, m, p, q, noise[j]))
            continue
        slope = rises[block] / (n - 1)
        for j in range(len(lam)):
            x, delta = eta * lam[j], (0.0, 0.0, 0.0)
            if slope != 0 and n * abs(x * (limit - x)) > SMALLEST_LAG:
                delta = times(lam[j] * slope, stationary_slope(x, m, nesterov))
            power, added, lagged = equal_steps(x, n, m, p, q, delta)
            # the sum of the lags begins at i = 1, and that of the doubling at 0
            ends = times(0.5 * (n - 1), plus(delta, transported(power, delta)))
            added = plus(added, plus(ends, plus(delta, times(-1.0, lagged))))
            store(bias, j, flushed(transported(power, moments_of(bias, j))))
            store(variance, j, plus(transported(power, moments_of(variance, j)), times(noise[j], added)))


@compiled(fast=True)
def follow(problem: Problem, trail: Array, rates: Array) -> None:
    """Take the moments in row 0 of ``trail`` through single steps; row t gets the moments after t steps."""
    lam, noise, m = problem.lam, problem.noise, problem.momentum
    p, q = direction(m, problem.nesterov)
    for t in range(len(rates)):
        now, after, eta = trail[t], trail[t + 1], rates[t]
        for j in range(len(lam)):
            store(after, j, next_moments(moments_of(now, j), eta * lam[j], m, p, q, noise[j]))


@compiled(fast=True)
def pull_back(problem: Problem, trail: Array, adjoint: Array, rates: Array, gradient: Array) -> None:
    """Take the derivatives of the loss in the moments back through single steps, and get those in the rates."""
    lam, noise, m = problem.lam, problem.noise, problem.momentum
    p, q = direction(m, problem.nesterov)
    for t in range(len(rates) - 1, -1, -1):
        before, eta, total = trail[t], rates[t], 0.0
        for j in range(len(lam)):
            x = eta * lam[j]
            a, b, _ = transport_slope(step_matrix(x, m, p, q), (-q, -p, 0.0, 0.0), moments_of(before, j))
            total += lam[j] * (adjoint[0, j] * (a + 2 * q * q * x * noise[j]) + adjoint[1, j] * (b - q * noise[j]))
        for j in range(len(lam)):  # a loop of its own: together with the sum it would not be vectorised
            store(adjoint, j, flushed(pulled_back(step_matrix(eta * lam[j], m, p, q), moments_of(adjoint, j))))
        gradient[t] = total


@compiled(fast=True)
def block_loss_and_gradient(problem: Problem, counts: IntArray, rates: Array, gradient: Array) -> float:
    r"""The loss ½ Σ w_j E[u_j²] after blocks of steps with one rate each; ``gradient`` gets its derivatives.

    A block maps the moments V to :math:`A^nVA^{n\top} + \sigma^2V_n`. Its derivative in the rate is computed on the
    way forward, together with the power and the sum (:func:`equal_steps_slope`); the adjoint runs backwards through
    the powers.
    """
    lam, noise, m = problem.lam, problem.noise, problem.momentum
    p, q = direction(m, problem.nesterov)
    powers, slopes = np.empty((len(counts), len(lam), 4)), np.empty((len(counts), 3, len(lam)))
    state, adjoint = np.zeros((3, len(lam))), np.zeros((3, len(lam)))
    state[0], adjoint[0] = problem.error, 0.5 * problem.weights
    for block in range(len(counts)):
        for j in range(len(lam)):
            power, added, power_slope, added_slope = equal_steps_slope(rates[block] * lam[j], counts[block], m, p, q)
            moments = moments_of(state, j)
            slope = plus(transport_slope(power, power_slope, moments), times(noise[j], added_slope))
            store(slopes[block], j, times(lam[j], slope))
            store(state, j, plus(transported(power, moments), times(noise[j], added)))
            for i in range(4):
                powers[block, j, i] = power[i]
    loss = np.sum(adjoint * state)
    for block in range(len(counts) - 1, -1, -1):
        gradient[block] = np.sum(adjoint * slopes[block])
        for j in range(len(lam)):
            s = powers[block, j]
            store(adjoint, j, flushed(pulled_back((s[0], s[1], s[2], s[3]), moments_of(adjoint, j))))
    return float(loss)


@compiled(fast=True)
def lower_by_steps(problem: Problem, largest: float, rates: Array, tolerance: float, num_sweeps: int) -> float:
    r"""Like :func:`eigencurve.theory.kernels.lower_by_steps`, with momentum; the loss is again convex in each rate.

    The u at the end is :math:`r_0u+r_1z` plus the noise of later steps. With :math:`d = pz + q(u-\xi)` and the new
    velocity :math:`z'`, a step gives :math:`r_0u + r_1z' - xr_0d`, and the loss is least at

    .. math:: \eta = \frac{\sum_j w_j\lambda_jr_0(r_0E[ud] + r_1E[z'd])}{\sum_j w_j\lambda_j^2r_0^2E[d^2]}
    """
    lam, weights, error, noise, m = problem.lam, problem.weights, problem.error, problem.noise, problem.momentum
    p, q = direction(m, problem.nesterov)
    trail = np.zeros((len(rates) + 1, 3, len(lam)))
    first, second, loss = np.empty(len(lam)), np.empty(len(lam)), np.inf
    for _ in range(num_sweeps):
        before = loss
        trail[0, 0] = error
        follow(problem, trail, rates)
        first[:], second[:], loss = 1.0, 0.0, 0.0
        for t in range(len(rates) - 1, -1, -1):
            top, bottom = 0.0, 0.0
            for j in range(len(lam)):
                (a, b, c), r = moments_of(trail[t], j), first[j]
                ahead = r * (p * b + q * a) + second[j] * (p * m * c + (p + q * m) * b + q * (a + noise[j]))
                top += weights[j] * lam[j] * r * ahead
                bottom += weights[j] * (lam[j] * r) ** 2 * (p * p * c + 2 * p * q * b + q * q * (a + noise[j]))
            eta = largest if top >= largest * bottom else max(top / bottom, 0.0)
            rates[t] = eta
            for j in range(len(lam)):
                x, r, s = eta * lam[j], first[j], second[j]
                loss += 0.5 * weights[j] * noise[j] * (q * x * r - s) ** 2
                first[j], second[j] = row_times(step_matrix(x, m, p, q), r, s)
        loss += 0.5 * np.sum(weights * error * first * first)
        if not loss < (1 - tolerance) * before:
            break
    return loss


@compiled(fast=True)
def loss_by_squares(problem: Problem, rates: Array) -> float:
    r"""The loss as a sum of squares, in which nothing cancels: the bias, and what the noise of each step contributes.

    .. math:: \tfrac12\sum_j w_j\Bigl(e_jr_0^2 + \sigma_j^2\sum_t(qx\,r_0-r_1)_t^2\Bigr)

    where the row :math:`(r_0, r_1)` maps (u, z) to the u at the end: (1, 0) times the matrices of the later steps.
    """
    p, q = direction(problem.momentum, problem.nesterov)
    loss = 0.0
    for j in range(len(problem.lam)):
        r, s, noisy = 1.0, 0.0, 0.0
        for t in range(len(rates) - 1, -1, -1):
            x = rates[t] * problem.lam[j]
            noisy += (q * x * r - s) ** 2
            r, s = row_times(step_matrix(x, problem.momentum, p, q), r, s)
        loss += 0.5 * problem.weights[j] * (problem.error[j] * r * r + problem.noise[j] * noisy)
    return loss
