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
    starts, middle = block_starts(steps, moved, run.rates), int(steps[len(steps) // 2])
    sampling, counts = sampling_variance(losses), np.diff(np.append(starts, len(steps)))
    at = _averaged(steps.astype(np.float64), starts, counts).round().astype(np.int64)
    # The variances follow from averages: those of single rows would favour the rows whose noise is low.
    variances = sampling + _model_variance(_averaged(without_spikes(losses), starts, counts), spread, len(losses))
    means = _averaged(limited(losses, np.repeat(np.sqrt(variances), counts)), starts, counts)
    deviations = np.sqrt(variances / counts)
    ratio = math.log(run.peak_lr / reference)
    return Curve(run, at, frozen(means), frozen(deviations), frozen(sampling / counts), middle, ratio)


def block_starts(steps: IntArray, moved: Array, rates: Array) -> IntArray:
    """The first row of every block of rows whose losses are averaged; every row, if there are few.

    A third of the blocks are spaced evenly over the rows, a third over the logarithm of the sum of the rates, because
    the loss falls fast at the start, and a third over the changes of the rate.

    Args:
        steps: Steps of the rows.
        moved: Sum of the rates before every step.
        rates: Rate of every step.
    """
    if len(steps) <= MOST_POINTS:
        return np.arange(len(steps))
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
    return np.asarray(np.where(spikes, smooth, losses))


def limited(losses: Array, deviations: Array) -> Array:
    """The losses, with spikes moved to within 4 standard deviations of their neighbours."""
    calm, most = without_spikes(losses), OUTLIER * deviations
    return np.asarray(np.where(calm == losses, losses, np.clip(losses, calm - most, calm + most)))


def _model_variance(losses: Array, spread: float, num_rows: int) -> Array:
    """The variance of the model's own error at every point, for each of the rows of a run."""
    timing = TIMING * math.exp(EXPONENT[0]) * (losses - losses.min() + 0.3 * spread)
    return np.asarray(((MISFIT * spread) ** 2 + timing**2) * max(num_rows / INDEPENDENT, 1.0))


def _averaged(values: Array, starts: IntArray, counts: Array | IntArray) -> Array:
    return np.asarray(np.add.reduceat(values, starts) / counts)
