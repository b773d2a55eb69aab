"""Curve: the points of a logged run that a fit uses. Long logs are averaged over blocks, and spikes are limited."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from eigencurve import _check
from eigencurve._arrays import Array, IntArray, frozen
from eigencurve._check import Description
from eigencurve.forecast.model import EXPONENT
from eigencurve.forecast.runs import LoggedRun

# Assumed relative error of the model, in loss and in time.
MISFIT, TIMING = 0.004, 0.06
# The errors of the model persist along a run: it counts as this many independent ones.
INDEPENDENT = 40
# The first part of a run, up to this fraction of the travel of the longest run, is not fitted.
SKIPPED = 0.01
# Losses beyond this many standard deviations are outliers: a spike of the loss counts less.
OUTLIER = 4.0
# Longer logs are averaged over at most this many blocks of rows.
MOST_POINTS = 1000
# Neighbours, on both sides, whose median a single loss is compared with.
NEIGHBOURS = 4
# Two losses are equal if they differ by less than this fraction of the range of their runs.
EQUAL = 1e-4


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
    moved = run.travel / reference
    used = moved[run.steps] >= SKIPPED * travel
    if rows is not None:
        used &= rows
    steps, losses = run.steps[used], run.losses[used] / unit
    if len(losses) < 3:
        ends = Description(f"the run {run.name!r}, which ends within the first 1 % of the longest")
        _check.refuse("fit_runs", "runs", "of similar length", ends, "Leave that run out.")
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


def own_rows(run: LoggedRun, runs: Sequence[LoggedRun]) -> NDArray[np.bool_]:
    """Which rows of ``run`` no other run begins with: the rows that a branch shares with its trunk count once."""
    trunks = [other for other in runs if len(other) < len(run) and contains(run, other)]
    return np.asarray(~np.isin(run.steps, np.concatenate([[-1], *(trunk.steps for trunk in trunks)])))


def contains(run: LoggedRun, other: LoggedRun) -> bool:
    """Whether ``run`` has all rows of ``other``: a copy, one with fewer rows, or the beginning of the same run."""
    _, mine, theirs = np.intersect1d(run.steps, other.steps, assume_unique=True, return_indices=True)
    if len(theirs) < len(other):
        return False
    limit = EQUAL * min(loss_range(run.losses), loss_range(other.losses))
    return bool((np.abs(run.losses[mine] - other.losses[theirs]) <= limit).all())


def local_median(losses: Array) -> Array:
    """The median of every loss and its four neighbours on both sides; the curve is mirrored at its ends."""
    return np.asarray(median_filter(losses, size=2 * NEIGHBOURS + 1, mode="mirror"))


def loss_range(losses: Array) -> float:
    """The range of the losses without single outliers: between the 5 % and the 95 % quantile of the local median."""
    low, high = np.quantile(local_median(losses), (0.05, 0.95))
    return float(high - low)


def sampling_variance(losses: Array) -> float:
    """The variance of one loss around the curve, from second differences; spikes hardly count."""
    if len(losses) < 5:
        return 0.0
    return float(np.median(np.diff(losses, 2) ** 2)) / (0.455 * 6)


def without_spikes(losses: Array) -> Array:
    """The losses with the local median in place of single outliers; the first losses may fall steeply, and stay."""
    smooth = local_median(losses)
    limit = OUTLIER * math.sqrt(sampling_variance(losses)) + 0.1 * float(np.ptp(smooth))
    spikes = np.abs(losses - smooth) > limit
    spikes[:NEIGHBOURS] = False
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
