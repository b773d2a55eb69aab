"""The loops over steps, or blocks of steps, and eigenvalues, compiled by numba.

Pass float64 arrays (int64 for counts) that are contiguous and writable: each kernel is then compiled once, and the
machine code is cached on disk. Numba's cache does not see changes in other files, so kernels call only kernels of the
same file. :mod:`eigencurve.theory.momentum_kernels` has the same kernels for SGD with momentum.

A state is an array of one row: the error of every eigenvalue, or its bias or variance part alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit

from eigencurve._arrays import Array, IntArray

F = TypeVar("F", bound=Callable[..., Any])

# Rows of a state.
NUM_MOMENTS = 1
# From this number of equal rates on, the closed form is cheaper than the steps.
SHORTEST_RUN = 32
# Errors below this, the smallest normal float64, are set to zero: subnormal numbers are slow and inexact.
SMALLEST = float(np.finfo(np.float64).tiny)
# Exponentials below exp(-700) are set to zero, for the same reason.
VANISHED = -700.0
# If n |x (2 - x)| is smaller, the change of the rate within a block adds less than the rounding error.
SMALLEST_LAG = 1e-6
# Each step of a lower bound is lowered by this relative amount, which exceeds its rounding error.
ROUNDING = 8 * float(np.finfo(np.float64).eps)
# A best step x is precise enough if the error of its lower bound, relative to the bound, is below this.
PRECISE = 1e-17
# Largest number of Newton iterations per step; the bound holds after any number of them.
MAX_NEWTON = 50
# If the noise exceeds the error by this factor, the best step is below 1e-30, and the error stays the same.
HOPELESS = 1e150
# Closer than this to x = 2, the largest stable step, the derivative is taken at x = 2: the formula would cancel.
NEAR_LIMIT = 1e-7


class Problem(NamedTuple):
    """The arrays and numbers of :class:`~eigencurve.theory.nodes.Nodes`, for kernels."""

    lam: Array
    weights: Array
    error: Array
    noise: Array
    momentum: float
    nesterov: bool
    noise_power: float


def compiled(fast: bool) -> Callable[[F], F]:
    """Numba's decorator with types, without the GIL; ``fast`` lets the compiler reorder sums."""
    math = {"reassoc", "contract"} if fast else False
    return cast(Callable[[F], F], njit(cache=True, nogil=True, error_model="numpy", fastmath=math))


@compiled(fast=True)
def next_error(error: float, x: float, noise: float) -> float:
    r"""The expected error after one step: :math:`(1-x)^2 e + x^2\sigma^2`, with :math:`x = \eta\lambda`."""
    return (1 - x) * (1 - x) * error + x * x * noise


@compiled(fast=True)
def flushed(value: float) -> float:
    """``value``, or 0 if it is subnormal."""
    return 0.0 if value < SMALLEST else value


@compiled(fast=False)
def equal_steps(x: float, count: int) -> tuple[float, float, float]:
    r"""The effect of n equal steps in closed form: ln K, 1 - K and the variance that they add, divided by σ².

    .. math:: K = (1-x)^{2n}, \qquad x^2\,\frac{1-K}{1-(1-x)^2}, \qquad x = \eta\lambda
    """
    # ln |1 - x| without cancellation near x = 0 and x = 2
    log_keep = 2 * count * (np.log1p(-x) if x < 1 else np.log1p(x - 2))
    lost = -np.expm1(log_keep)
    gap = x * (2 - x)
    return log_keep, lost, x * x * count if gap == 0 else x * x * lost / gap


@compiled(fast=False)
def advance(problem: Problem, bias: Array, variance: Array, counts: IntArray, rates: Array, rises: Array) -> None:
    r"""Take the bias and variance of every eigenvalue through blocks of steps, in place.

    .. math:: b \leftarrow K b, \qquad v \leftarrow K v + \sigma^2\Bigl[g(1-K)
              + \delta\Bigl(\tfrac{n-1}2(1+K) + K - k\,\frac{1-K}{1-k}\Bigr)\Bigr]

    for a block of n steps, where x is the block's mean rate η times λ, :math:`k = (1-x)^2`, :math:`K = k^n`,
    :math:`g = \eta^p x/(2-x)` is the stationary variance of a constant rate (divided by σ²), and g rises by δ per step,
    which is the change of the rate per step times :math:`dg/d\eta = \lambda\eta^p\,(2+p(2-x))/(2-x)^2`. This follows
    from :math:`v_{t+1} - \sigma^2g_t = k(v_t - \sigma^2g_t)`, which is exact. It neglects the change of k and δ within
    a block, so blocks of one step and blocks of equal rates are exact.

    Args:
        problem: Eigenvalues λ_j, noise levels σ_j² and power p of the rate in the noise.
        bias: State of the bias, updated.
        variance: State of the variance, updated.
        counts: Number of steps n of each block.
        rates: Mean rate of each block.
        rises: Last rate minus first rate of each block.
    """
    lam, noise, power = problem.lam, problem.noise, problem.noise_power
    b, v = bias[0], variance[0]
    for block in range(len(counts)):
        n, eta = counts[block], rates[block]
        level = eta**power
        if n == 1:
            for j in range(len(lam)):
                x = eta * lam[j]
                keep = (1 - x) * (1 - x)
                b[j] = flushed(keep * b[j])
                v[j] = keep * v[j] + x * x * (level * noise[j])
            continue
        slope = rises[block] / (n - 1)
        for j in range(len(lam)):
            x = eta * lam[j]
            log_keep, lost, added = equal_steps(x, n)
            keep = np.exp(log_keep) if log_keep > VANISHED else 0.0
            gap = x * (2 - x)
            if slope != 0 and n * abs(gap) > SMALLEST_LAG:
                delta = (2 + power * (2 - x)) * lam[j] * slope / ((2 - x) * (2 - x))
                added += delta * (0.5 * (n - 1) * (1 + keep) + keep - (1 - x) * (1 - x) * lost / gap)
            b[j] = flushed(keep * b[j])
            v[j] = keep * v[j] + added * (level * noise[j])


@compiled(fast=True)
def follow(problem: Problem, trail: Array, rates: Array) -> None:
    """Take the state ``trail[0]`` through single steps; ``trail[t]`` gets the state after t steps."""
    lam, noise, power = problem.lam, problem.noise, problem.noise_power
    for t in range(len(rates)):
        before, after = trail[t, 0], trail[t + 1, 0]
        eta, level = rates[t], rates[t] ** power
        for j in range(len(lam)):
            after[j] = next_error(before[j], eta * lam[j], level * noise[j])


@compiled(fast=True)
def pull_back(problem: Problem, trail: Array, adjoint: Array, rates: Array, gradient: Array) -> None:
    r"""Take the derivatives of the loss in the errors back through single steps, and get those in the rates.

    .. math:: \frac{\partial}{\partial\eta_t} = \sum_j a_j\lambda_j\bigl(-2(1-x_j)e_j
              + (2+p)\,x_j\sigma_j^2\eta_t^p\bigr), \qquad a_j \leftarrow (1-x_j)^2 a_j

    Args:
        problem: Eigenvalues λ_j, noise levels σ_j² and power p of the rate in the noise.
        trail: States before each step, with the errors e_j, from :func:`follow`.
        adjoint: Derivative a_j of the loss in each error after the last step, updated to before the first.
        rates: Rate of each step.
        gradient: Derivative of the loss in each rate, written.
    """
    lam, noise, power = problem.lam, problem.noise, problem.noise_power
    for t in range(len(rates) - 1, -1, -1):
        before, after = trail[t, 0], adjoint[0]
        eta, level, slope = rates[t], (1 + 0.5 * power) * rates[t] ** power, 0.0
        for j in range(len(lam)):
            x = eta * lam[j]
            slope += after[j] * lam[j] * (x * (level * noise[j]) - (1 - x) * before[j])
        for j in range(len(lam)):  # a loop of its own: together with the sum it would not be vectorised
            x = eta * lam[j]
            after[j] = flushed((1 - x) * (1 - x) * after[j])
        gradient[t] = 2 * slope


@compiled(fast=True)
def block_loss_and_gradient(problem: Problem, counts: IntArray, rates: Array, gradient: Array) -> float:
    r"""The loss ½ Σ w_j e_j after blocks of steps with one rate each; its derivatives are written into ``gradient``.

    .. math:: e \leftarrow K e + \sigma^2\eta^p g (1-K), \qquad
              \frac{\partial}{\partial x} = K'(e - \sigma^2\eta^p g) + \sigma^2\eta^p\Bigl(g' + \frac{p}{x}g\Bigr)(1-K),
              \qquad a \leftarrow K a

    with :math:`K = (1-x)^{2n}`, :math:`g = x/(2-x)`, :math:`x = \eta\lambda_j` and the adjoint a, which is w/2 at the
    end.
    """
    lam, noise, power = problem.lam, problem.noise, problem.noise_power
    kept, slopes = np.empty((len(counts), len(lam))), np.empty((len(counts), len(lam)))
    e = problem.error.copy()
    for block in range(len(counts)):
        n, eta, level = counts[block], rates[block], rates[block] ** power
        for j in range(len(lam)):
            x = eta * lam[j]
            log_keep, _, added = equal_steps(x, n)
            keep = np.exp(log_keep) if log_keep > VANISHED else 0.0
            steeper = 0.0 if x == 1 else -2 * n * keep / (1 - x)
            if abs(2 - x) < NEAR_LIMIT:
                rise, per_x = 2 * x * n + x * x * n * (n - 1), x * n
            else:
                rise, per_x = 2 * (1 - keep) / ((2 - x) * (2 - x)) - x / (2 - x) * steeper, (1 - keep) / (2 - x)
            kept[block, j] = keep
            slopes[block, j] = lam[j] * (steeper * e[j] + (rise + power * per_x) * (level * noise[j]))
            e[j] = keep * e[j] + added * (level * noise[j])
    adjoint = 0.5 * problem.weights
    loss = np.sum(adjoint * e)
    for block in range(len(counts) - 1, -1, -1):
        gradient[block] = np.sum(adjoint * slopes[block])
        for j in range(len(lam)):
            adjoint[j] = flushed(kept[block, j] * adjoint[j])
    return float(loss)


@compiled(fast=False)
def advance_greedy(error: Array, noise: Array, noise_power: float, counts: IntArray) -> None:
    r"""Let every coordinate take n steps, each the best for it alone, and lower-bound its error, in place.

    .. math:: e \leftarrow \min_x\,(1-x)^2e + x^{2+p}s, \qquad
              h(x) = w + x - 1 = 0, \qquad w = \frac{(2+p)\,s}{2e}\,x^{1+p}

    h is half the derivative divided by e. It is increasing and convex, so Newton's method converges from every x in
    (0, 1]. It starts from the last step, moved by :math:`\frac{d\ln x}{d\ln e} = \frac{w}{(1+p)w+x}`, which is often
    precise enough as it is. The second derivative of the objective is at least 2e, so for any x

    .. math:: \min \ge e\,\Bigl((1-x)^2 + \frac{2xw}{2+p} - h(x)^2\Bigr)

    which is what a step returns, less ``ROUNDING``: a lower bound although x is approximate.

    Args:
        error: Error e of each coordinate, updated.
        noise: The s of each coordinate, σ² λ^-p.
        noise_power: Power p of the rate in the noise.
        counts: Number of steps n of each coordinate.
    """
    q, share = 1 + noise_power, 2 / (2 + noise_power)
    for j in range(len(error)):
        x = 1.0
        for step in range(counts[j]):
            ratio = noise[j] / (share * error[j])
            if not ratio < HOPELESS:
                break
            if step == 0 and ratio > 1:
                x = ratio ** (-1 / q)
            bound, w = 0.0, 0.0
            for _ in range(MAX_NEWTON):
                w = ratio * x**q
                h = w + x - 1
                bound = (1 - x) * (1 - x) + share * x * w - h * h
                if h * h <= PRECISE * bound:
                    break
                x -= h / (q * w / x + 1)
            e = error[j] * max(bound, 0.0) * (1 - ROUNDING)
            error[j] = 0.0 if e < SMALLEST else e
            power, fall = w / (q * w + x), 1 - bound
            x *= 1 - power * fall * (1 + 0.5 * (1 - power) * fall)  # bound**power


@compiled(fast=False)
def best_rate(a: float, b: float, c: float, noise_power: float, largest: float) -> float:
    r"""The η in [0, ``largest``] that minimises :math:`b\eta^2-2a\eta + c\eta^{2+p}`, for a, b, c >= 0.

    If p > 0, half the derivative is increasing and convex, so Newton's method converges from above its root.
    """
    if noise_power == 0:
        return largest if a >= largest * (b + c) else a / (b + c)
    c *= 1 + 0.5 * noise_power
    if a >= largest * (b + c * largest**noise_power):
        return largest
    eta = largest
    for _ in range(MAX_NEWTON):
        lower = eta - (eta * (b + c * eta**noise_power) - a) / (b + (1 + noise_power) * c * eta**noise_power)
        if not 0 <= lower < eta:
            break
        eta = lower
    return eta


@compiled(fast=True)
def lower_by_steps(problem: Problem, largest: float, rates: Array, tolerance: float, num_sweeps: int) -> float:
    r"""Lower the loss by the best value of one rate at a time, last step first; return the loss that is left.

    The loss is convex in each rate: a constant plus

    .. math:: \sum_j a_j\bigl((1-\eta\lambda_j)^2e_j + \eta^{2+p}\lambda_j^2\sigma_j^2\bigr), \qquad
              \eta = \min\Bigl(\eta_{\max},\; \frac{A}{B+(1+\frac p2)\eta^pC}\Bigr)

    with the error e before that step, the adjoint a after it, :math:`A=\sum a\lambda e`, :math:`B=\sum a\lambda^2e` and
    :math:`C=\sum a\lambda^2\sigma^2`. The errors stay the same while the sweep runs backwards, so it costs as much as a
    gradient.

    Args:
        problem: Coordinates of the problem.
        largest: The largest rate.
        rates: Rates to start from, updated.
        tolerance: The sweeps end when one lowers the loss by less than this fraction.
        num_sweeps: Most sweeps over all steps.
    """
    lam, noise, power = problem.lam, problem.noise, problem.noise_power
    trail, loss = np.empty((len(rates) + 1, 1, len(lam))), np.inf
    for _ in range(num_sweeps):
        before, loss = loss, 0.0
        trail[0, 0] = problem.error
        follow(problem, trail, rates)
        adjoint = 0.5 * problem.weights
        for t in range(len(rates) - 1, -1, -1):
            a, b, c = 0.0, 0.0, 0.0
            for j in range(len(lam)):
                pull = adjoint[j] * lam[j]
                a += pull * trail[t, 0, j]
                b += pull * lam[j] * trail[t, 0, j]
                c += pull * lam[j] * noise[j]
            eta = best_rate(a, b, c, power, largest)
            rates[t] = eta
            loss += eta * eta * eta**power * c
            for j in range(len(lam)):
                adjoint[j] = flushed((1 - eta * lam[j]) * (1 - eta * lam[j]) * adjoint[j])
        loss += np.sum(adjoint * problem.error)
        if not loss < (1 - tolerance) * before:
            break
    return loss
