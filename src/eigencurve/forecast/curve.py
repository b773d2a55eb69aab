"""Curve: the points of a logged run that a fit uses. Long logs are averaged over blocks, and spikes are limited."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigencurve import _check
from eigencurve._arrays import Array, IntArray, frozen
from eigencurve.forecast.law import EXPONENT
from eigencurve.forecast.runs import LoggedRun
from eigencurve.forecast.soundness import REACH, local_median, sampling_variance

# A fit follows the curves to this fraction of their fall, and their timing to this fraction.
MISFIT, TIMING = 0.004, 0.06
# The errors of the model persist along a run: it counts as this many independent ones.
INDEPENDENT = 40
# The first part of a run, up to this fraction of the travel of the longest run, is not fitted.
SKIPPED = 0.01
# Losses beyond this many standard deviations are outliers: a spike of the loss counts less.
OUTLIER = 4.0
# Longer logs are averaged over at most this many blocks of rows.
MOST_POINTS = 1000


@dataclass(frozen=True, eq=False)
class Curve:
    """The fitted points of one run: rows of its log, or averages over blocks of rows.

    Attributes:
        run: The run.
        steps: Steps of the points.
        losses: Losses at these steps, in the unit of the fit.
        deviations: Standard deviation that the fit assumes at every point.
        sampling: Variance of every point around the curve.
        middle: Step of the middle row.
        log_ratio: Logarithm of the peak rate relative to the reference.
    """

    run: LoggedRun
    steps: IntArray
    losses: Array
    deviations: Array
    sampling: Array
    middle: int
    log_ratio: float


def curve_of(
    run: LoggedRun,
    reference: float,
    travel: float,
    spread: float,
    unit: float = 1.0,
    rows: NDArray[np.bool_] | None = None,
) -> Curve:
    """The points of ``run`` that are fitted, with their standard deviations.

    Args:
        run: The run.
        reference: Rate that the relative rates refer to.
        travel: Sum of the relative rates of the longest run.
        spread: Fall of the losses, in units of ``unit``.
        unit: Unit of the fitted losses.
        rows: Which rows to use; by default all.
    """
    moved = np.concatenate(([0.0], np.cumsum(run.rates))) / reference
    used = moved[run.steps] >= SKIPPED * travel
    if rows is not None:
        used &= rows
    steps, losses = run.steps[used], run.losses[used] / unit
    if len(losses) < 3:
        name = f" {run.name!r}" if run.name else ""
        _check.refuse("fit_runs", "runs", f"longer: run{name} ends within the first 1 % of the longest", len(run))
    losses, variances = _limited(losses, spread)
    counts = np.ones(len(losses))
    sampling = np.full(len(losses), sampling_variance(losses))
    middle = int(steps[len(steps) // 2])
    if len(losses) > MOST_POINTS:
        starts = block_starts(steps, moved, run.rates)
        counts = np.diff(np.append(starts, len(steps)))
        steps = _averaged(steps.astype(np.float64), starts, counts).round().astype(np.int64)
        losses, variances, sampling = (_averaged(values, starts, counts) for values in (losses, variances, sampling))
    deviations = np.sqrt(variances / counts)
    ratio = math.log(run.peak_lr / reference)
    return Curve(run, steps, frozen(losses), frozen(deviations), frozen(sampling / counts), middle, ratio)


def block_starts(steps: IntArray, moved: Array, rates: Array) -> IntArray:
    """The first row of every block of rows whose losses are averaged.

    A third of the blocks are spaced evenly over the rows, a third over the logarithm of the sum of the rates, because
    the loss falls fast at the start, and a third over the changes of the rate.

    Args:
        steps: Steps of the rows.
        moved: Sum of the rates before every step.
        rates: Rate of every step.
    """
    changes = np.concatenate(([0.0, 0.0], np.cumsum(np.abs(np.diff(rates)))))
    parts = (np.arange(len(steps), dtype=np.float64), np.log(moved[steps]), changes[steps])
    place = np.sum([(part - part[0]) / max(part[-1] - part[0], np.finfo(np.float64).tiny) for part in parts], axis=0)
    block = np.minimum(place / place[-1] * MOST_POINTS, MOST_POINTS - 1).astype(np.int64)
    return np.flatnonzero(np.append(True, np.diff(block) > 0)).astype(np.int64)


def without_spikes(losses: Array) -> Array:
    """The losses with the local median in place of single outliers; the first losses may fall steeply, and stay."""
    smooth = local_median(losses)
    limit = OUTLIER * math.sqrt(sampling_variance(losses)) + 0.1 * float(np.ptp(smooth))
    spikes = np.abs(losses - smooth) > limit
    spikes[:REACH] = False
    return np.where(spikes, smooth, losses)


def _limited(losses: Array, spread: float) -> tuple[Array, Array]:
    """The losses, with spikes moved to within 4 standard deviations of their neighbours, and the variance of each."""
    calm = without_spikes(losses)
    timing = TIMING * math.exp(EXPONENT[0]) * (calm - calm.min() + 0.3 * spread)
    model = (MISFIT * spread) ** 2 + timing**2
    variances = sampling_variance(losses) + model * max(len(losses) / INDEPENDENT, 1.0)
    most = OUTLIER * np.sqrt(variances)
    return np.where(calm == losses, losses, np.clip(losses, calm - most, calm + most)), variances


def _averaged(values: Array, starts: IntArray, counts: Array | IntArray) -> Array:
    return np.asarray(np.add.reduceat(values, starts) / counts)
