"""Checks that logged losses are training curves: their size, values that cannot be meant, their fall, repeated runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from eigencurve import _check
from eigencurve._arrays import Array
from eigencurve.forecast.runs import LoggedRun

# Losses of another size are in a unit that nobody uses, or are not losses.
SMALLEST, LARGEST = 1e-30, 1e30
# Neighbours, on both sides, whose median a single loss is compared with.
REACH = 4
# A loss that is this many times the range of its run away from its neighbours cannot be meant.
WILD = 100.0
# A fall below this fraction of the losses is rounding.
ROUNDING = 1e-12
# A run diverged if its loss climbs back by this fraction of its fall while the rate does not rise by more than 5 %.
CLIMB, SAME_RATE = 0.5, 1.05
# Differences of two medians below this many standard deviations are noise.
CLEAR = 4.0
# Two losses are equal if they differ by less than this fraction of the range of their runs.
EQUAL = 1e-4
# A run decays if its rate falls below this fraction of its peak.
DECAYED = 0.9


def require_sound(runs: Sequence[LoggedRun]) -> None:
    """Refuse losses from which no forecast can follow.

    Raises:
        ValueError: A loss is far from its neighbours, all losses of a run are equal, too small or too large, or a run
            ends higher than it began or climbs back by half of its fall.
    """
    for place, run in enumerate(runs, start=1):
        name = called(run, place)
        _require_tame(run, name)
        _require_size(run, name)
        _require_fall(run, name)


def require_distinct(runs: Sequence[LoggedRun]) -> None:
    """Refuse two runs if one has all rows of the other, unless it is a branch that decays, and the other its trunk.

    Raises:
        ValueError: Two runs have the same losses.
    """
    for (place, one), (second, other) in combinations(enumerate(runs, start=1), 2):
        _require_two(one, other, f"{called(one, place)} and {called(other, second)}")


def called(run: LoggedRun, place: int) -> str:
    """The name of a run in a message, or its place among the runs."""
    return _check.shown(run.name) if run.name else f"run {place}"


def local_median(losses: Array) -> Array:
    """The median of every loss and its four neighbours on both sides; the curve is mirrored at its ends."""
    return np.asarray(median_filter(losses, size=2 * REACH + 1, mode="mirror"))


def loss_range(losses: Array) -> float:
    """The range of the losses without single outliers: between the 5 % and the 95 % quantile of the local median."""
    low, high = np.quantile(local_median(losses), (0.05, 0.95))
    return float(high - low)


def sampling_variance(losses: Array) -> float:
    """The variance of one loss around the curve, from second differences; spikes hardly count."""
    if len(losses) < 5:
        return 0.0
    return float(np.median(np.diff(losses, 2) ** 2)) / (0.455 * 6)


def _require_tame(run: LoggedRun, name: str) -> None:
    away = np.abs(run.losses - local_median(run.losses))
    limit = np.full(len(run), WILD * loss_range(run.losses))
    limit[:REACH] *= WILD  # a curve may fall steeply at its start
    wild = np.flatnonzero((away > limit) & (limit > 0))
    if len(wild):
        worst = int(wild[np.argmax(away[wild])])
        near = float(local_median(run.losses)[worst])
        found = f"{run.losses[worst]:.4g} at step {run.steps[worst]:,} of {name}, where its neighbours are {near:.4g}"
        _refuse("free of values that cannot be meant", found, "Remove that row from the log.")


def _require_size(run: LoggedRun, name: str) -> None:
    largest = float(np.abs(run.losses).max())
    fall = float(np.ptp(run.losses))
    if fall <= ROUNDING * largest:
        found = f"the constant {run.losses[0]:.6g} in {name}"
        _refuse("runs whose loss falls", found, "Leave that run out; a broken run often has a constant loss.")
    if largest > LARGEST or fall < SMALLEST:
        found = f"losses up to {largest:.3g} with a range of {fall:.3g} in {name}"
        _refuse(f"losses between {SMALLEST:g} and {LARGEST:g}", found, "Log the loss in another unit.")


def _require_fall(run: LoggedRun, name: str) -> None:
    """Refuse a run that ends higher than it began, or that climbs back although its rate does not rise."""
    size = max(3, len(run) // 10)
    blocks = np.array_split(np.arange(len(run)), max(2, len(run) // size))
    medians = np.array([np.median(run.losses[block]) for block in blocks])
    lowest = int(np.argmin(medians))
    start, low, end = float(medians[0]), float(medians[lowest]), float(medians[-1])
    # The standard deviation of a median is 1.25 times that of a mean, and two of them differ by √2 times that.
    scale = float(np.abs(run.losses).max())
    noise = CLEAR * 1.25 * scale * math.sqrt(2 * sampling_variance(run.losses / scale) / size)
    if end > start + max(noise, ROUNDING * scale):
        found = f"a loss that rises from {start:.4g} to {end:.4g} in {name}"
        _refuse("runs whose loss falls", found, "The run diverged: leave it out, or cut it with last_step=.")
    place = int(run.steps[blocks[lowest][-1]])
    rates = run.rates[min(place, run.total_steps) - 1], run.rates[int(run.steps[-1]) - 1]
    if end > low + CLIMB * (start - low) + noise and rates[1] <= SAME_RATE * rates[0]:
        found = f"a loss that rises again, from {low:.4g} near step {place:,} to {end:.4g} at the end of {name}"
        remedy = "The run diverged or overfits: cut it there with last_step=."
        _refuse("runs whose loss falls", found, remedy)


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


def _require_two(one: LoggedRun, other: LoggedRun, pair: str) -> None:
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    if contains(longer, shorter) and not (_decays(longer) and not _decays(shorter)):
        found = f"{len(shorter):,} equal rows in {pair}"
        _refuse("different runs", found, "They are one run, which must count once: leave one of them out.")


def _decays(run: LoggedRun) -> bool:
    """Whether the rate falls below 90 % of its peak."""
    rates = run.rates[: run.steps[-1]]
    return bool(rates[int(np.argmax(rates)) :].min() < DECAYED * rates.max())


def _refuse(constraint: str, found: str, remedy: str) -> NoReturn:
    raise ValueError(f"fit_runs: 'runs' must be {constraint}, got {found}. {remedy}")
