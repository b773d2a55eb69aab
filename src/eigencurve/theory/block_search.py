"""The best scale of a schedule and the numerically best schedule, in seconds however long the run.

What :mod:`eigencurve.theory.tuning` and :mod:`eigencurve.theory.optimal` do step by step is done here by blocks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.piecewise import Piecewise, piecewise
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.theory.block_kernels import block_loss_and_gradient, scaled_losses
from eigencurve.theory.blocks import Blocks, block_loss, blocks_of
from eigencurve.theory.certificate import certificate
from eigencurve.theory.nodes import Nodes, compress
from eigencurve.theory.optimal import DIVERGED, LEVELS, MAX_ITERATIONS, SMALLEST_RATE, Search, knots_for
from eigencurve.theory.tuning import classic_schedules, rescaled

# Scales tried, as fractions of the largest, before the best of them is refined.
GRID = np.geomspace(1e-6, 1.0, 25)
# The search runs on about 128 nodes, its scales on about 64; what it found is judged on about 256, in finer blocks.
SEARCH_CELLS, SCALE_CELLS, FINE_CELLS = 64, 32, 128
COARSE, FINE = 0.1, 0.02
# Rates are scaled to this much below the largest, so that rounding takes none above it.
ROUNDING = 1e-12


def best_scale(nodes: Nodes, blocks: Blocks, max_lr: float) -> float:
    """The factor, with no rate above ``max_lr``, at which the expected loss of ``blocks`` is least.

    A grid of factors, then Brent's method around the best of them.
    """
    lam, weights = np.array(nodes.lam), np.array(nodes.weights)
    error, noise = np.array(nodes.error), np.array(nodes.noise)
    limit = max_lr / blocks.peak

    def losses(logs: Array) -> Array:
        scales = limit * np.exp(np.minimum(logs, 0.0))
        found = scaled_losses(lam, weights, error, noise, blocks.counts, blocks.rates, blocks.rises, scales)
        return np.nan_to_num(found, nan=math.inf)

    logs = np.log(GRID)
    coarse = losses(logs)
    best = int(np.argmin(coarse))
    if not math.isfinite(coarse[best]):
        return limit * float(GRID[0])
    bracket = (logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)])
    ceiling = 1e3 * (float(coarse[best]) or 1.0)  # Brent's method cannot reckon with infinity
    found = minimize_scalar(
        lambda x: min(float(losses(np.array([x]))[0]), ceiling),
        bounds=bracket,
        method="bounded",
        options={"xatol": 1e-4, "maxiter": 25},
    )
    return limit * math.exp(float(found.x if found.fun < coarse[best] else logs[best]))


def at_best_scale(nodes: Nodes, schedule: Schedule, max_lr: float) -> Schedule:
    """``schedule`` with all of its rates multiplied by the factor of :func:`best_scale`, found on about 64 nodes."""
    blocks = blocks_of(schedule, np.array([schedule.total_steps]), COARSE)
    factor = best_scale(compress(nodes, SCALE_CELLS), blocks, max_lr)
    return rescaled(schedule, factor * (1 - ROUNDING))


def search_blocks(spectrum: Spectrum, nodes: Nodes, total_steps: int, max_lr: float) -> Search:
    """The schedule of T steps with 0 <= lr <= max_lr that has the least expected loss we can find.

    The classic schedules at their best scales; from the best of them L-BFGS over the rates of 32, 128, 512 blocks of
    constant rate (every step where T is smaller), which have an exact loss and gradient in closed form; then
    straight lines through the blocks' middles. The best of all of these wins, judged on about 256 nodes.
    """
    few, fine = compress(nodes, SEARCH_CELLS), compress(nodes, FINE_CELLS)
    classics = {
        name: at_best_scale(nodes, schedule, max_lr)
        for name, schedule in classic_schedules(spectrum, few, total_steps, max_lr).items()
    }
    start = _least(few, classics)
    found, converged = _descend(few, classics[start], max_lr)
    name = f"from {start}"
    finalists: dict[str, Schedule] = {**classics, name: found}
    winner = _least(fine, finalists)
    status = ("optimised" if converged else "not converged") if winner == name else "classic"
    loss = block_loss(fine, blocks_of(finalists[winner], np.array([total_steps]), FINE, max_lr * spectrum.L))
    bound = certificate(nodes, total_steps, max_lr)
    return Search(finalists[winner], loss, bound, winner.removeprefix("from "), status)


def _least(nodes: Nodes, schedules: Mapping[str, Schedule]) -> str:
    """The name of the schedule with the least loss."""
    losses = {
        name: block_loss(nodes, blocks_of(schedule, np.array([schedule.total_steps]), FINE))
        for name, schedule in schedules.items()
    }
    return min(losses, key=lambda name: losses[name])


def _descend(nodes: Nodes, schedule: Schedule, max_lr: float) -> tuple[Schedule, bool]:
    """Lower the loss from ``schedule`` in passes of more and more blocks; also, whether the last one converged."""
    total_steps, current, converged = schedule.total_steps, schedule, False
    for level in LEVELS:
        edges = np.append(knots_for(total_steps, level), total_steps)
        middles = (edges[:-1] + edges[1:] - 1) // 2
        rates, converged = _pass(nodes, np.diff(edges), current(middles), max_lr)
        current = _through(total_steps, edges, rates)
        if len(rates) == total_steps:
            break
    return current, converged


def _pass(nodes: Nodes, counts: IntArray, rates: Array, max_lr: float) -> tuple[Array, bool]:
    """L-BFGS over the logarithms of the blocks' rates; the loss counts from 1, its value at the start."""
    lam, weights = np.array(nodes.lam), np.array(nodes.weights)
    error, noise = np.array(nodes.error), np.array(nodes.noise)
    gradient = np.empty(len(counts))
    begin = np.log(np.clip(rates / max_lr, SMALLEST_RATE, 1.0))
    scale = block_loss_and_gradient(lam, weights, error, noise, counts, max_lr * np.exp(begin), gradient) or 1.0

    def objective(logs: Array) -> tuple[float, Array]:
        now = max_lr * np.exp(logs)
        loss = block_loss_and_gradient(lam, weights, error, noise, counts, now, gradient)
        if not loss < DIVERGED * scale:
            return DIVERGED, np.zeros(len(counts))
        return loss / scale, gradient * now / scale

    limits = [(math.log(SMALLEST_RATE), 0.0)] * len(counts)
    options = {"maxiter": MAX_ITERATIONS, "maxfun": 2 * MAX_ITERATIONS, "maxcor": 30, "ftol": 1e-12, "gtol": 1e-9}
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    return np.minimum(max_lr * np.exp(found.x), max_lr), bool(found.success)


def _through(total_steps: int, edges: IntArray, rates: Array) -> Piecewise:
    """Straight lines through the middle of every block; the first and the last rate hold to the ends."""
    middles = (edges[:-1] + edges[1:] - 1) / 2
    inner = (middles > 0) & (middles < total_steps - 1)
    knots = np.concatenate(([0.0], middles[inner], [total_steps - 1.0]))
    values = np.concatenate((rates[:1], rates[inner], rates[-1:]))
    return piecewise(total_steps, *((knots, values) if total_steps > 1 else (knots[:1], values[:1])))
