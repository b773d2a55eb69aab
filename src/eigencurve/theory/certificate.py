"""The certificate: a loss that no schedule can beat, and the schedule that attains it for a single eigenvalue."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import join
from eigencurve.schedules.decays import constant, inverse_time
from eigencurve.theory.kernels import SMALLEST, advance_greedy
from eigencurve.theory.nodes import Nodes


def certificate(nodes: Nodes, total_steps: int, max_lr: float) -> float:
    r"""The loss ½ Σ w_j e_j if every coordinate could take the steps that are best for it alone.

    .. math:: e \leftarrow \min_{0 \le x \le c}\,(1-x)^2e + x^2\sigma^2, \qquad c = \eta_{\max}\lambda_j,
              \qquad x = \min\bigl(c, \tfrac{e}{e+\sigma^2}\bigr)

    The minimum increases with e, so the step that is best now is also part of the best run, and a schedule shared by
    all coordinates cannot do better in any of them. In closed form, the error shrinks geometrically while
    :math:`e/(e+\sigma^2) > c`; after that, :math:`1/e` grows by :math:`1/\sigma^2` per step.

    If the noise follows the rate, :math:`\sigma^2\eta^p`, the minimum of :math:`(1-x)^2e + x^{2+p}\sigma^2\lambda^{-p}`
    increases with e as well, so the same argument holds. The error shrinks geometrically while
    :math:`e > (1+\tfrac p2)\,\tfrac{c}{1-c}\,\sigma^2\eta_{\max}^p`; after that, every step is computed from below by
    :func:`~eigencurve.theory.kernels.advance_greedy`. The cost is then up to T times the number of nodes.
    """
    return float(certificates(nodes, np.array([total_steps]), max_lr)[0])


def certificates(nodes: Nodes, marks: IntArray, max_lr: float) -> Array:
    """The certificate after each of ``marks`` steps (increasing): no schedule has a lower loss at that time."""
    cap = max_lr * nodes.lam
    capped = _at_rate(nodes, max_lr)
    at_cap = _steps_at_cap(capped, cap, int(marks[-1]))
    times = marks[:, None].astype(np.float64)
    held = np.minimum(at_cap, times)
    left = times - held
    bounds = np.empty(len(marks))
    for i, free in enumerate(_after_release(nodes, _after_cap(capped, cap, at_cap), left)):
        error = _after_cap(capped, cap, held[i])
        bounds[i] = 0.5 * float(nodes.weights @ np.where(left[i] > 0, free, error))
    return bounds


def greedy_schedule(nodes: Nodes, node: int, total_steps: int, max_lr: float) -> Schedule:
    r"""The best schedule for one eigenvalue alone: ``max_lr``, then inverse time decay.

    .. math:: \eta_t = \min\Bigl(\eta_{\max},\; \frac{1}{\lambda\,(1 + \sigma^2/e_k + t - k)}\Bigr)

    where k is the first step at which :math:`e_k/(e_k+\sigma^2)`, the best step, is at most :math:`\eta_{\max}\lambda`.
    If all eigenvalues are equal, its loss is the certificate. Momentum is ignored. If the noise follows the rate, the
    schedule is the best for noise that stays at its level at ``max_lr``, and only a candidate for a search.
    """
    at, level = slice(node, node + 1), max_lr**nodes.noise_power
    one = Nodes(nodes.lam[at], nodes.weights[at], nodes.error[at], level * nodes.noise[at], momentum=0.0)
    cap = max_lr * one.lam
    held = int(_steps_at_cap(one, cap, total_steps)[0])
    if held == total_steps:
        return constant(total_steps, max_lr)
    error = float(_after_cap(one, cap, np.array([held]))[0])
    lam, left = float(one.lam[0]), total_steps - held
    ratio = float(one.noise[0]) / error if error > 0 else math.inf
    if not math.isfinite(ratio):
        return constant(total_steps, max_lr)
    if one.noise[0] == 0:  # one step of 1/λ reaches zero, and further steps stay there
        tail: Schedule = constant(left, 1 / lam)
    else:
        tail = inverse_time(left, min(max_lr, 1 / (lam * (1 + ratio))), 1 / (lam * (ratio + left)))
    return join([constant(held, max_lr), tail]) if held else tail


def _at_rate(nodes: Nodes, rate: float) -> Nodes:
    """The nodes with the noise levels of a step at ``rate``."""
    return replace(nodes, noise=nodes.noise * rate**nodes.noise_power)


def _steps_at_cap(nodes: Nodes, cap: Array, total_steps: int) -> Array:
    """The number of steps for which the cap is binding in each coordinate."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        enough = np.where(cap < 1, (1 + 0.5 * nodes.noise_power) * cap / (1 - cap) * nodes.noise, np.inf)
        rest = cap / (2 - cap) * nodes.noise
        # e - rest shrinks by the factor (1 - cap)² per step, and rest < enough
        count = np.ceil(np.log((enough - rest) / (nodes.error - rest)) / (2 * np.log1p(-cap)))
    # without noise enough is 0 and the count infinite
    return np.clip(np.where(nodes.error <= enough, 0.0, np.nan_to_num(count)), 0, total_steps)


def _after_cap(nodes: Nodes, cap: Array, count: Array) -> Array:
    """The error after ``count`` steps at the cap; unchanged if ``count`` is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = cap / (2 - cap) * nodes.noise
        moved = rest + (nodes.error - rest) * np.exp(2 * count * np.log1p(-np.minimum(cap, 1.0)))
    # The recursion flushes such errors to zero; the bound must do the same to stay below it.
    return np.where(count > 0, np.where(moved < 10 * SMALLEST, 0.0, moved), nodes.error)


def _after_release(nodes: Nodes, error: Array, counts: Array) -> Iterator[Array]:
    """The errors after the steps of each row of ``counts`` without a cap, from ``error``; the rows increase."""
    if nodes.noise_power:
        now, noise, done = error.copy(), nodes.noise * nodes.lam**-nodes.noise_power, np.zeros(len(nodes))
        for count in counts:
            advance_greedy(now, noise, nodes.noise_power, (count - done).astype(np.int64))
            done = count
            yield now
        return
    for count in counts:
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            yield np.where(nodes.noise > 0, error / (1 + count * error / nodes.noise), 0.0)
