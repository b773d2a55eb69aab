r"""The loops of SGD with momentum over steps, or blocks of steps, and eigenvalues, compiled by numba.

All kernels follow the moments E[u²], E[uz] and E[z²] of each eigenvalue, where :math:`u = \sqrt\lambda(w-w_*)` and z
is the velocity divided by :math:`\sqrt\lambda`. With :math:`x = \eta\lambda` and noise ξ of variance σ², a step is

.. math:: z \leftarrow mz + u - \xi, \qquad u \leftarrow u - x\,z \;\text{(heavy ball)}, \qquad
          u \leftarrow u - x\,(u - \xi + mz) \;\text{(Nesterov, with the new z)}

In terms of the old z, both are :math:`u \leftarrow u - x\,(pz + q(u-\xi))` with p = m, q = 1 for heavy ball and
p = m², q = 1 + m for Nesterov. The rows of a state are the three moments. See :mod:`eigencurve.theory.kernels` for the
arrays to pass. Numba's cache does not see changes in other files, so no kernel of another file is called here.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from eigencurve._arrays import Array, IntArray
from eigencurve.theory.kernels import SMALLEST, SMALLEST_LAG, compiled

Moments: TypeAlias = tuple[float, float, float]
Matrix: TypeAlias = tuple[float, float, float, float]


@compiled(fast=True)
def direction(momentum: float, nesterov: bool) -> tuple[float, float]:
    """The weights p of the velocity and q of the gradient in a step."""
    return (momentum * momentum, 1 + momentum) if nesterov else (momentum, 1.0)


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
def times(factor: float, moments: Moments) -> Moments:
    """The multiple."""
    return factor * moments[0], factor * moments[1], factor * moments[2]


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
def equal_steps_with_momentum(
    x: float, count: int, m: float, p: float, q: float, delta: Moments
) -> tuple[Matrix, Moments, Moments]:
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
    """The power and the sum for Q of :func:`equal_steps_with_momentum`, and the derivatives of both in x."""
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
def advance_momentum(
    lam: Array, noise: Array, momentum: float, nesterov: bool, bias: Array, variance: Array, rates: Array
) -> None:
    """Take the bias and variance parts of every eigenvalue's moments through the steps of ``rates``, in place."""
    p, q = direction(momentum, nesterov)
    for eta in rates:
        for j in range(len(lam)):
            x = eta * lam[j]
            a, b, c = next_moments((bias[0, j], bias[1, j], bias[2, j]), x, momentum, p, q, 0.0)
            small = a + c < SMALLEST
            bias[0, j] = 0.0 if small else a
            bias[1, j] = 0.0 if small else b
            bias[2, j] = 0.0 if small else c
            moments = next_moments((variance[0, j], variance[1, j], variance[2, j]), x, momentum, p, q, noise[j])
            variance[0, j], variance[1, j], variance[2, j] = moments


@compiled(fast=True)
def momentum_loss_and_gradient(
    lam: Array,
    weights: Array,
    error: Array,
    noise: Array,
    momentum: float,
    nesterov: bool,
    rates: Array,
    gradient: Array,
) -> float:
    r"""The loss ½ Σ w_j E[u_j²] after all steps; its derivative in every rate is written into ``gradient``.

    The adjoint of the three moments is :math:`(w_j/2, 0, 0)` at the end and runs backwards through the transposed
    recursion. The moments are stored every √T steps and recomputed in between, so memory grows as √T.
    """
    p, q = direction(momentum, nesterov)
    steps, nodes, m = len(rates), len(lam), momentum
    length = int(np.ceil(np.sqrt(steps)))
    segments = (steps + length - 1) // length
    # The moments of eigenvalue j are entries 3j to 3j+2. In separate rows the compiler would not vectorise the loops.
    marks, trail = np.empty((segments, 3 * nodes)), np.empty((length, 3 * nodes))
    state, adjoint = np.zeros(3 * nodes), np.zeros(3 * nodes)
    state[::3], adjoint[::3] = error, 0.5 * weights
    for t in range(steps):
        if t % length == 0:
            marks[t // length] = state
        eta = rates[t]
        for j in range(nodes):
            a, b, c = state[3 * j], state[3 * j + 1], state[3 * j + 2]
            a, b, c = next_moments((a, b, c), eta * lam[j], m, p, q, noise[j])
            state[3 * j], state[3 * j + 1], state[3 * j + 2] = a, b, c
    loss = np.sum(adjoint * state)
    for segment in range(segments - 1, -1, -1):
        first, last = segment * length, min(steps, (segment + 1) * length)
        trail[0] = marks[segment]
        for t in range(first, last - 1):
            now, after, eta = trail[t - first], trail[t - first + 1], rates[t]
            for j in range(nodes):
                a, b, c = now[3 * j], now[3 * j + 1], now[3 * j + 2]
                a, b, c = next_moments((a, b, c), eta * lam[j], m, p, q, noise[j])
                after[3 * j], after[3 * j + 1], after[3 * j + 2] = a, b, c
        for t in range(last - 1, first - 1, -1):
            now, eta, total = trail[t - first], rates[t], 0.0
            for j in range(nodes):
                x = eta * lam[j]
                s = step_matrix(x, m, p, q)
                a, b, _ = transport_slope(s, (-q, -p, 0.0, 0.0), (now[3 * j], now[3 * j + 1], now[3 * j + 2]))
                u, v, w = adjoint[3 * j], adjoint[3 * j + 1], adjoint[3 * j + 2]
                total += lam[j] * (u * (a + 2 * q * q * x * noise[j]) + v * (b - q * noise[j]))
                u, v, w = pulled_back(s, (u, v, w))
                small = u + w < SMALLEST
                adjoint[3 * j] = 0.0 if small else u
                adjoint[3 * j + 1] = 0.0 if small else v
                adjoint[3 * j + 2] = 0.0 if small else w
            gradient[t] = total
    return float(loss)


@compiled(fast=True)
def advance_momentum_blocks(
    lam: Array,
    noise: Array,
    momentum: float,
    nesterov: bool,
    bias: Array,
    variance: Array,
    counts: IntArray,
    rates: Array,
    rises: Array,
) -> None:
    r"""Take the bias and variance parts of every eigenvalue's moments through blocks of steps, in place.

    .. math:: V \leftarrow A^n V A^{n\top} + \sigma^2\Bigl[\sum_{i<n} A^iQA^{i\top} + \tfrac{n-1}2(\Delta +
              A^n\Delta A^{n\top}) - \sum_{0<i<n} A^i\Delta A^{i\top}\Bigr]

    for a block of n steps with the matrix A and the noise covariance σ²Q of one step at the block's mean rate. The
    stationary covariance of a constant rate (divided by σ²) rises by Δ per step. This follows from
    :math:`V_{t+1} - \sigma^2 G_t = A(V_t - \sigma^2 G_t)A^\top`, which is exact. It neglects the change of A and Δ
    within a block. See :func:`eigencurve.theory.kernels.advance_blocks` for the arguments.
    """
    p, q = direction(momentum, nesterov)
    m, limit = momentum, 2 * (1 + momentum) / (1 + 2 * momentum if nesterov else 1.0)
    for block in range(len(counts)):
        n, eta = counts[block], rates[block]
        slope = rises[block] / max(n - 1, 1)
        for j in range(len(lam)):
            x, delta = eta * lam[j], (0.0, 0.0, 0.0)
            if slope != 0 and n * abs(x * (limit - x)) > SMALLEST_LAG:
                delta = times(lam[j] * slope, stationary_slope(x, m, nesterov))
            power, added, lagged = equal_steps_with_momentum(x, n, m, p, q, delta)
            # the sum of the lags begins at i = 1, and that of the doubling at 0
            ends = times(0.5 * (n - 1), plus(delta, transported(power, delta)))
            added = plus(added, plus(ends, plus(delta, times(-1.0, lagged))))
            a, b, c = transported(power, (bias[0, j], bias[1, j], bias[2, j]))
            small = a + c < SMALLEST
            bias[0, j] = 0.0 if small else a
            bias[1, j] = 0.0 if small else b
            bias[2, j] = 0.0 if small else c
            moved = transported(power, (variance[0, j], variance[1, j], variance[2, j]))
            variance[0, j], variance[1, j], variance[2, j] = plus(moved, times(noise[j], added))


@compiled(fast=True)
def momentum_block_loss_and_gradient(
    lam: Array,
    weights: Array,
    error: Array,
    noise: Array,
    momentum: float,
    nesterov: bool,
    counts: IntArray,
    rates: Array,
    gradient: Array,
) -> float:
    r"""Like :func:`momentum_loss_and_gradient`, for blocks of steps with one rate each.

    A block maps the moments V to :math:`A^nVA^{n\top} + \sigma^2V_n`. Its derivative in the rate is computed on the
    way forward, together with the power and the sum (:func:`equal_steps_slope`); the adjoint runs backwards through
    the powers.
    """
    p, q = direction(momentum, nesterov)
    blocks, nodes, m = len(counts), len(lam), momentum
    powers, slopes = np.empty((blocks, nodes, 4)), np.empty((blocks, nodes, 3))
    state = np.zeros((nodes, 3))
    state[:, 0] = error
    for block in range(blocks):
        n, eta = counts[block], rates[block]
        for j in range(nodes):
            power, added, power_slope, added_slope = equal_steps_slope(eta * lam[j], n, m, p, q)
            moments = (state[j, 0], state[j, 1], state[j, 2])
            slope = plus(transport_slope(power, power_slope, moments), times(noise[j], added_slope))
            moments = plus(transported(power, moments), times(noise[j], added))
            for i in range(4):
                powers[block, j, i] = power[i]
            for i in range(3):
                slopes[block, j, i] = slope[i]
                state[j, i] = moments[i]
    loss = 0.5 * np.sum(weights * state[:, 0])
    adjoint = np.zeros((nodes, 3))
    adjoint[:, 0] = 0.5 * weights
    for block in range(blocks - 1, -1, -1):
        total = 0.0
        for j in range(nodes):
            for i in range(3):
                total += lam[j] * adjoint[j, i] * slopes[block, j, i]
            s = (powers[block, j, 0], powers[block, j, 1], powers[block, j, 2], powers[block, j, 3])
            back = pulled_back(s, (adjoint[j, 0], adjoint[j, 1], adjoint[j, 2]))
            small = back[0] + back[2] < SMALLEST
            for i in range(3):
                adjoint[j, i] = 0.0 if small else back[i]
        gradient[block] = total
    return float(loss)


@compiled(fast=True)
def lower_momentum_by_steps(
    lam: Array,
    weights: Array,
    error: Array,
    noise: Array,
    momentum: float,
    nesterov: bool,
    largest: float,
    rates: Array,
    tolerance: float,
    num_sweeps: int,
) -> float:
    r"""Like :func:`~eigencurve.theory.kernels.lower_by_steps`, with momentum; the loss is again convex in each rate.

    The u at the end is :math:`r_0u+r_1z` plus the noise of later steps. With :math:`d = pz + q(u-\xi)` and the new
    velocity :math:`z'`, a step gives :math:`r_0u + r_1z' - xr_0d`, and the loss is least at

    .. math:: \eta = \frac{\sum_j w_j\lambda_jr_0(r_0E[ud] + r_1E[z'd])}{\sum_j w_j\lambda_j^2r_0^2E[d^2]}
    """
    p, q = direction(momentum, nesterov)
    steps, nodes, m = len(rates), len(lam), momentum
    trail, first, second = np.empty((steps + 1, 3, nodes)), np.empty(nodes), np.empty(nodes)
    loss = np.inf
    for _ in range(num_sweeps):
        before = loss
        trail[0], trail[0, 0] = 0.0, error
        for t in range(steps):
            now, after, eta = trail[t], trail[t + 1], rates[t]
            for j in range(nodes):
                a, b, c = next_moments((now[0, j], now[1, j], now[2, j]), eta * lam[j], m, p, q, noise[j])
                after[0, j], after[1, j], after[2, j] = a, b, c
        first[:], second[:], loss = 1.0, 0.0, 0.0
        for t in range(steps - 1, -1, -1):
            now, top, bottom = trail[t], 0.0, 0.0
            for j in range(nodes):
                a, b, c, r = now[0, j], now[1, j], now[2, j], first[j]
                ahead = r * (p * b + q * a) + second[j] * (p * m * c + (p + q * m) * b + q * (a + noise[j]))
                top += weights[j] * lam[j] * r * ahead
                bottom += weights[j] * (lam[j] * r) ** 2 * (p * p * c + 2 * p * q * b + q * q * (a + noise[j]))
            eta = largest if top >= largest * bottom else max(top / bottom, 0.0)
            rates[t] = eta
            for j in range(nodes):
                x, r, s = eta * lam[j], first[j], second[j]
                loss += 0.5 * weights[j] * noise[j] * (q * x * r - s) ** 2
                first[j], second[j] = row_times(step_matrix(x, m, p, q), r, s)
        loss += 0.5 * np.sum(weights * error * first * first)
        if not loss < (1 - tolerance) * before:
            break
    return loss


@compiled(fast=True)
def loss_by_squares(
    lam: Array, weights: Array, error: Array, noise: Array, momentum: float, nesterov: bool, rates: Array
) -> float:
    r"""The loss as a sum of squares, in which nothing cancels: the bias, and what the noise of each step contributes.

    .. math:: \tfrac12\sum_j w_j\Bigl(e_jr_0^2 + \sigma_j^2\sum_t(qx\,r_0-r_1)_t^2\Bigr)

    where the row :math:`(r_0, r_1)` maps (u, z) to the u at the end: (1, 0) times the matrices of the later steps.
    """
    p, q = direction(momentum, nesterov)
    loss = 0.0
    for j in range(len(lam)):
        r, s, noisy = 1.0, 0.0, 0.0
        for t in range(len(rates) - 1, -1, -1):
            x = rates[t] * lam[j]
            noisy += (q * x * r - s) ** 2
            r, s = row_times(step_matrix(x, momentum, p, q), r, s)
        loss += 0.5 * weights[j] * (error[j] * r * r + noise[j] * noisy)
    return loss
