"""Checks before a fit: logged losses are training curves, runs differ, and all of them record the same loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NoReturn

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve._check import Arg, Description, Words
from eigencurve.forecast.columns import split_of
from eigencurve.forecast.coverage import SAME
from eigencurve.forecast.curve import NEIGHBOURS, contains, local_median, loss_range, sampling_variance
from eigencurve.forecast.runs import LoggedRun

# Losses of another size are in a unit that nobody uses, or are not losses.
SMALLEST, LARGEST = 1e-30, 1e30
# A loss that is this many times the range of its run away from its neighbours is an error of the log.
WILD = 100.0
# A fall below this fraction of the losses is rounding.
ROUNDING = 1e-12
# A run diverged if its loss climbs back by this fraction of its fall while the rate does not rise by more than 5 %.
CLIMB = 0.5
# Differences of two medians below this many standard deviations are noise.
CLEAR = 4.0
# A run decays if its rate falls below this fraction of its peak.
DECAYED = 0.9
# Rates are the same if they differ by less than this fraction.
SAME_RATE = 0.01
# Runs of one model differ less than this while their rates are the same; bits and nats differ by 1.44.
LARGEST_RATIO = 1.4
# Differences below this fraction of the range of the losses are always allowed.
NEAR = 0.1
# Fewer losses before the decay cannot be compared.
FEWEST = 4
ONE_MODEL = "Fit runs of one model, on the same data, apart from others."
SAME_STEPS = "Check that the steps of both logs count optimizer steps, not epochs or rows."


def require_sound(runs: Sequence[LoggedRun]) -> None:
    """Refuse losses that cannot be fitted.

    Raises:
        ValueError: A loss is far from its neighbours, all losses of a run are equal, too small or too large, or a run
            ends higher than it began or climbs back by half of its fall.
    """
    for place, run in enumerate(runs, start=1):
        name = _called(run, place)
        _require_tame(run, name)
        _require_size(run, name)
        _require_fall(run, name)


def require_distinct(runs: Sequence[LoggedRun]) -> None:
    """Refuse two runs if one has all rows of the other, unless it is a branch that decays, and the other its trunk.

    Raises:
        ValueError: Two runs have the same losses.
    """
    for (first, one), (second, other) in combinations(enumerate(runs, start=1), 2):
        longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
        is_branch = _decays(longer) and not _decays(shorter)
        if contains(longer, shorter) and not is_branch:
            evidence = f"{len(shorter):,} equal rows in {_called(one, first)} and {_called(other, second)}"
            _refuse("different runs", evidence, "They are one run, which must count once: leave one of them out.")


def require_same_loss(runs: Sequence[LoggedRun]) -> None:
    """Refuse runs whose losses cannot be compared.

    Two runs are refused if the name of one loss says training and the other validation. They are also refused if their
    losses differ by more than a factor of 1.4, in the median, over the first steps, as long as both used the same
    learning rates, or before their decay after the same sum of learning rates at the same peak rate. Such runs have
    different models, data or units, or one log counts epochs in place of steps.

    Raises:
        ValueError: Two of the runs record different losses.
    """
    for (first, one), (second, other) in combinations(enumerate(runs, start=1), 2):
        pair = f"{_called(one, first)} and {_called(other, second)}"
        if len({split_of(one.metric), split_of(other.metric)} - {""}) > 1:
            metrics = f"{one.metric!r} and {other.metric!r} in {pair}"
            _refuse("runs with the same loss", metrics, ("Read all logs with the same ", Arg("loss"), "."))
        unclear = NEAR * max(float(np.ptp(run.losses)) for run in (one, other))
        early, later = f"{pair}, after the same learning rates", f"{pair}, after the same sum of learning rates"
        _require_alike(_early_losses(one, other), unclear, early, ONE_MODEL)
        _require_alike(_losses_at_same_travel(one, other), unclear, later, SAME_STEPS)


def shared_steps(one: LoggedRun, other: LoggedRun) -> int:
    """The number of steps from the start over which two runs have the same rates.

    >>> from eigencurve import constant, multistep
    >>> steps, losses = range(10, 90, 10), [1.0] * 8
    >>> shared_steps(LoggedRun(steps, losses, constant(80, 0.1)), LoggedRun(steps, losses, multistep(80, 0.1, [30])))
    30
    """
    length = min(one.total_steps, other.total_steps)
    a, b = one.rates[:length], other.rates[:length]
    differ = np.flatnonzero(np.abs(a - b) > SAME_RATE * np.maximum(a, b))
    return int(differ[0]) if len(differ) else length


def _refuse(constraint: str, evidence: str, remedy: Words) -> NoReturn:
    _check.refuse("fit_runs", "runs", constraint, Description(evidence), remedy)


def _called(run: LoggedRun, place: int) -> str:
    """The name of a run in a message, or its place among the runs."""
    return _check.shown(run.name) if run.name else f"run {place}"


def _require_tame(run: LoggedRun, name: str) -> None:
    smooth = local_median(run.losses)
    away = np.abs(run.losses - smooth)
    limit = np.full(len(run), WILD * loss_range(run.losses))
    limit[:NEIGHBOURS] *= WILD  # a curve may fall steeply at its start
    wild = np.flatnonzero((away > limit) & (limit > 0))
    if len(wild):
        worst = int(wild[np.argmax(away[wild])])
        evidence = (
            f"{run.losses[worst]:.4g} at step {run.steps[worst]:,} of {name}, between losses of {smooth[worst]:.4g}"
        )
        _refuse("free of values that are no losses", evidence, "Remove that row from the log.")


def _require_size(run: LoggedRun, name: str) -> None:
    largest, fall = float(np.abs(run.losses).max()), float(np.ptp(run.losses))
    if fall <= ROUNDING * largest:
        evidence = f"the constant {run.losses[0]:.6g} in {name}"
        remedy = "Leave that run out; a broken run often has a constant loss."
        _refuse("runs whose loss falls", evidence, remedy)
    if largest > LARGEST or fall < SMALLEST:
        evidence = f"losses up to {largest:.3g} with a range of {fall:.3g} in {name}"
        limits = f"losses between {SMALLEST:g} and {LARGEST:g}"
        _refuse(limits, evidence, "Log the loss in another unit.")


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
        evidence = f"a loss that rises from {start:.4g} to {end:.4g} in {name}"
        remedy = ("The run diverged: leave it out, or read its log only up to a ", Arg("last_step"), ".")
        _refuse("runs whose loss falls", evidence, remedy)
    place = int(run.steps[blocks[lowest][-1]])
    rates = run.rates[min(place, run.total_steps) - 1], run.rates[int(run.steps[-1]) - 1]
    if end > low + CLIMB * (start - low) + noise and rates[1] <= SAME * rates[0]:
        evidence = f"a loss that rises again, from {low:.4g} near step {place:,} to {end:.4g} at the end of {name}"
        remedy = ("The run diverged or overfits: read its log only up to there, with ", Arg("last_step"), ".")
        _refuse("runs whose loss falls", evidence, remedy)


def _decays(run: LoggedRun) -> bool:
    rates = run.rates[: run.steps[-1]]
    return bool(rates[int(np.argmax(rates)) :].min() < DECAYED * rates.max())


def _require_alike(losses: tuple[float, float] | None, unclear: float, pair: str, remedy: str) -> None:
    """Refuse two losses that differ by more than the ratio; they may be zero, so a small difference is allowed."""
    if losses is None:
        return
    one, other = losses
    if abs(one - other) > max((1 - 1 / LARGEST_RATIO) * max(abs(one), abs(other)), unclear):
        _refuse("runs with the same loss", f"{one:.4g} and {other:.4g} in {pair}", remedy)


def _early_losses(one: LoggedRun, other: LoggedRun) -> tuple[float, float] | None:
    """The median loss of each run over the steps that both reached with the same rates, or None."""
    last = min(shared_steps(one, other), int(one.steps[-1]), int(other.steps[-1]))
    first = max(int(one.steps[0]), int(other.steps[0]))
    steps = np.unique(np.concatenate([run.steps[(run.steps >= first) & (run.steps <= last)] for run in (one, other)]))
    return _medians(steps, (one.steps, one.losses), (other.steps, other.losses)) if len(steps) else None


def _losses_at_same_travel(one: LoggedRun, other: LoggedRun) -> tuple[float, float] | None:
    """The median loss of each run over the sums of the rates that both reached before they decay, or None.

    Only runs with the same peak rate are compared, since at another rate the same sum leaves other noise.
    """
    if max(one.peak_lr, other.peak_lr) > SAME * min(one.peak_lr, other.peak_lr):
        return None
    parts = [_before_decay(run) for run in (one, other)]
    if not all(len(travel) for travel, _ in parts):
        return None
    first, last = max(travel[0] for travel, _ in parts), min(travel[-1] for travel, _ in parts)
    places = np.concatenate([travel[(travel >= first) & (travel <= last)] for travel, _ in parts])
    return _medians(places, *parts) if len(places) >= FEWEST else None


def _medians(places: Array | IntArray, *curves: tuple[Array | IntArray, Array]) -> tuple[float, float]:
    """The median of two curves, interpolated at ``places``."""
    one, other = (float(np.median(np.interp(places, at, losses))) for at, losses in curves)
    return one, other


def _before_decay(run: LoggedRun) -> tuple[Array, Array]:
    """The sums of the rates at the losses before the rate falls below 90 % of its peak, and these losses."""
    top = int(np.argmax(run.rates))
    low = np.flatnonzero(run.rates[top:] < DECAYED * run.peak_lr)
    end = top + int(low[0]) if len(low) else run.total_steps
    rows = (run.steps > 0) & (run.steps <= end)
    return run.travel[run.steps[rows]], run.losses[rows]
