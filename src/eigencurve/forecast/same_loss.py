"""A check that several runs record the same loss."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array
from eigencurve.forecast.columns import split_of
from eigencurve.forecast.runs import LoggedRun

# Rates are the same if they differ by less than this fraction.
SAME_RATE = 0.01
# Runs of one model differ less than this while their rates are the same; bits and nats differ by 1.44.
LARGEST_RATIO = 1.4
# Differences below this fraction of the range of the losses are always allowed.
NEAR = 0.1
# Two runs have one peak rate if theirs differ by less than this factor, and decay below this fraction of it.
SAME_PEAK, DECAYED = 1.05, 0.9
# Fewer losses before the decay cannot be compared.
FEWEST = 4


def require_same_loss(runs: Sequence[LoggedRun], function: str = "fit_runs") -> None:
    """Refuse runs whose losses cannot be compared.

    Two runs are refused if the name of one loss says training and that of the other validation. They are also refused
    if their losses differ by more than a factor of 1.4, in the median, over the first steps, as long as both used the
    same learning rates, or before their decay after the same sum of learning rates at the same peak rate. Such runs
    have different models, data or units, or one log counts epochs in place of steps.

    Args:
        runs: Runs that one fit shall use.
        function: Name of the function that checks its argument ``runs``, for the message.

    Raises:
        ValueError: Two of the runs record different losses.
    """
    for one, other in combinations(runs, 2):
        splits = {split_of(one.metric), split_of(other.metric)} - {""}
        pair = f"{_called(one, runs)} and {_called(other, runs)}"
        if len(splits) > 1:
            metrics = f"{one.metric!r} and {other.metric!r} in {pair}"
            _refuse(function, metrics, "Pass loss= to load_run, with the loss that all runs have.")
        unclear = NEAR * max(float(np.ptp(run.losses)) for run in (one, other))
        found = _early_losses(one, other)
        if found is not None and not _alike(*found, unclear):
            values = f"{found[0]:.4g} and {found[1]:.4g} in {pair}, after the same learning rates"
            _refuse(function, values, "Fit runs of one model, on the same data, apart from others.")
        found = _losses_at_same_travel(one, other)
        if found is not None and not _alike(*found, unclear):
            values = f"{found[0]:.4g} and {found[1]:.4g} in {pair}, after the same sum of learning rates"
            _refuse(function, values, "Check that the steps of both logs count optimizer steps, not epochs or rows.")


def _refuse(function: str, found: str, remedy: str) -> None:
    raise ValueError(f"{function}: 'runs' must record the same loss, got {found}. {remedy}")


def _called(run: LoggedRun, runs: Sequence[LoggedRun]) -> str:
    return _check.shown(run.name) if run.name else f"run {next(i for i, r in enumerate(runs) if r is run) + 1}"


def _alike(one: float, other: float, unclear: float) -> bool:
    """Whether two losses are the same up to the ratio; losses may be zero, so a small difference is always allowed."""
    return abs(one - other) <= max((1 - 1 / LARGEST_RATIO) * max(abs(one), abs(other)), unclear)


def _early_losses(one: LoggedRun, other: LoggedRun) -> tuple[float, float] | None:
    """The median loss of each run over the steps that both reached with the same rates, or None."""
    last = min(shared_steps(one, other), int(one.steps[-1]), int(other.steps[-1]))
    first = max(int(one.steps[0]), int(other.steps[0]))
    if last < first:
        return None
    steps = np.unique(np.concatenate([run.steps[(run.steps >= first) & (run.steps <= last)] for run in (one, other)]))
    medians = [float(np.median(np.interp(steps, run.steps, run.losses))) for run in (one, other)]
    return (medians[0], medians[1]) if len(steps) else None


def _losses_at_same_travel(one: LoggedRun, other: LoggedRun) -> tuple[float, float] | None:
    """The median loss of each run over the sums of the rates that both reached before they decay, or None.

    Only runs with the same peak rate are compared, since at another rate the same sum leaves other noise.
    """
    if max(one.peak_lr, other.peak_lr) > SAME_PEAK * min(one.peak_lr, other.peak_lr):
        return None
    parts = [_before_decay(run) for run in (one, other)]
    if not all(len(moved) for moved, _ in parts):
        return None
    first, last = max(moved[0] for moved, _ in parts), min(moved[-1] for moved, _ in parts)
    places = np.concatenate([moved[(moved >= first) & (moved <= last)] for moved, _ in parts])
    if len(places) < FEWEST:
        return None
    medians = [float(np.median(np.interp(places, moved, losses))) for moved, losses in parts]
    return medians[0], medians[1]


def _before_decay(run: LoggedRun) -> tuple[Array, Array]:
    """The sums of the rates at the losses before the rate falls below 90 % of its peak, and these losses."""
    top = int(np.argmax(run.rates))
    low = np.flatnonzero(run.rates[top:] < DECAYED * run.peak_lr)
    end = top + int(low[0]) if len(low) else run.total_steps
    rows = (run.steps > 0) & (run.steps <= end)
    moved = np.concatenate(([0.0], np.cumsum(run.rates)))
    return moved[run.steps[rows]], run.losses[rows]


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
