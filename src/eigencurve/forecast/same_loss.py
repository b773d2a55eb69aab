"""A check that several runs record the same loss."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from eigencurve import _check
from eigencurve.forecast.columns import split_of
from eigencurve.forecast.runs import LoggedRun

# Rates are the same if they differ by less than this fraction.
SAME_RATE = 0.01
# Runs of one model differ less than this while their rates are the same; bits and nats differ by 1.44.
LARGEST_RATIO = 1.4


def require_same_loss(runs: Sequence[LoggedRun], function: str = "fit_runs") -> None:
    """Refuse runs whose losses cannot be compared.

    Two runs are refused if the name of one loss says training and that of the other validation. They are also refused
    if their losses differ by more than a factor of 1.4, in the median, over the first steps, as long as both used the
    same learning rates. Such runs have different models, data or units.

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
        found = _early_losses(one, other)
        if found is not None and not _alike(*found):
            values = f"{found[0]:.4g} and {found[1]:.4g} in {pair}, after the same learning rates"
            _refuse(function, values, "Fit runs of one model, on the same data, apart from others.")


def _refuse(function: str, found: str, remedy: str) -> None:
    raise ValueError(f"{function}: 'runs' must record the same loss, got {found}. {remedy}")


def _called(run: LoggedRun, runs: Sequence[LoggedRun]) -> str:
    return _check.shown(run.name) if run.name else f"run {next(i for i, r in enumerate(runs) if r is run) + 1}"


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= (1 - 1 / LARGEST_RATIO) * max(abs(one), abs(other))


def _early_losses(one: LoggedRun, other: LoggedRun) -> tuple[float, float] | None:
    """The median loss of each run over the steps that both reached with the same rates, or None."""
    last = min(shared_steps(one, other), int(one.steps[-1]), int(other.steps[-1]))
    first = max(int(one.steps[0]), int(other.steps[0]))
    if last < first:
        return None
    steps = np.unique(np.concatenate([run.steps[(run.steps >= first) & (run.steps <= last)] for run in (one, other)]))
    medians = [float(np.median(np.interp(steps, run.steps, run.losses))) for run in (one, other)]
    return (medians[0], medians[1]) if len(steps) else None


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
