"""The schedules of an optimizer's parameter groups: which one each group follows, its rates and its length."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from eigencurve import _check
from eigencurve.schedules.base import Schedule, require_schedule
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum

# One schedule for all groups; or one per group, in order or by the groups' names, with None for a rate that stays.
Schedules = Schedule | Sequence[Schedule | None] | Mapping[str, Schedule | None]
Groups = Sequence[Mapping[str, Any]]
NUM_AHEAD = 256


class CooldownOptions(TypedDict, total=False):
    """How the rate decays in the cooldown of a trainer; :func:`eigencurve.cooldown` documents each option."""

    shape: str
    min_lr: float | None
    spectrum: Spectrum | PowerLaw | None


def schedules_of(function: str, given: Schedules, groups: Groups) -> list[Schedule | None]:
    """The schedule of every group.

    Args:
        function: Function name for error messages.
        given: One schedule for all groups, a list with one for each, or a mapping from the groups' names.
        groups: The optimizer's ``param_groups``.

    Raises:
        TypeError: Something is neither a schedule nor None.
        ValueError: There are more or fewer schedules than groups, a name is unknown, or no group has a schedule.
    """
    if isinstance(given, Schedule):
        return [given] * len(groups)
    if isinstance(given, Mapping):
        schedules = _by_name(function, given, groups)
    elif isinstance(given, Sequence) and not isinstance(given, str):
        schedules = list(given)
    else:
        need = "a Schedule, a list with one per parameter group, or a mapping from the groups' names"
        _check.wrong_type(function, "schedule", need, given)
    for schedule in distinct(schedules):
        require_schedule(function, schedule)
    if len(schedules) != len(groups):
        need = f"a list of {len(groups)}, one per parameter group"
        _check.refuse(function, "schedule", need, f"{len(schedules)} of them")
    if not distinct(schedules):
        _check.refuse(function, "schedule", "a Schedule for at least one group", given)
    return schedules


def ratios_of(function: str, given: Schedules, groups: Groups) -> list[float]:
    """The factor of every group on the rate of its schedule.

    Groups that share one schedule, or one name in a mapping, keep the ratio of their initial rates to the first one.
    A list gives every group exactly its own schedule, with factor 1.
    """
    if not isinstance(given, Schedule | Mapping):
        return [1.0] * len(groups)
    keys = ["" if isinstance(given, Schedule) else group["name"] for group in groups]
    rates = [float(group.get("initial_lr", group["lr"])) for group in groups]
    first = {key: rates[keys.index(key)] for key in keys}
    for key, rate in first.items():
        if rate <= 0 and (isinstance(given, Schedule) or given[key] is not None):
            remedy = "The other groups keep their ratio to this rate."
            _check.refuse(function, "optimizer", "one whose first group has a rate > 0", rate, remedy)
    return [rate / first[key] if first[key] > 0 else 1.0 for rate, key in zip(rates, keys, strict=True)]


def joined_ratio(function: str, rate: float, default: float, initial: float, current: float) -> float:
    r"""The factor of a group that joins a run, on the rate of the schedule that all groups share.

    .. math:: \frac{\eta_g}{f(t)} \quad\text{or, with the default rate,}\quad \frac{\eta_g}{\eta_{0,0}}

    A group with a rate of its own starts with it. The default rate is that of the start of the run, so a group that has
    it gets the ratio that it would have had from the start.

    Args:
        function: Function name for error messages.
        rate: Rate that the group was added with.
        default: Rate that the optimizer gives to groups without one; NaN if it gives none.
        initial: Initial rate of the first group.
        current: Current rate of the schedule.

    >>> joined_ratio("ScheduleLR", rate=0.05, default=0.5, initial=0.5, current=0.2)
    0.25
    >>> joined_ratio("ScheduleLR", rate=0.5, default=0.5, initial=0.5, current=0.2)
    1.0
    """
    _check.at_least(function, "lr", rate, 0.0, "This is the rate of a parameter group that was added to the optimizer.")
    if rate == default:
        return rate / initial
    if current <= 0:
        need = "that of the optimizer for a group that is added while the schedule's rate is 0"
        _check.refuse(function, "lr", need, rate, "Add the group without a rate, or while the rate is positive.")
    return rate / current


def distinct(schedules: Schedules) -> list[Schedule]:
    """The schedules in ``schedules``, without the groups that have none."""
    if isinstance(schedules, Schedule):
        return [schedules]
    every = schedules.values() if isinstance(schedules, Mapping) else schedules
    return [schedule for schedule in every if schedule is not None]


class RateReader:
    """Rates of successive steps. One call of a schedule costs as much as 256 rates, so they are computed ahead.

    >>> from eigencurve.schedules.decays import linear
    >>> read = RateReader()
    >>> read(linear(4, 0.1), 1), read(linear(4, 0.2), 2)
    (0.07500000000000001, 0.1)
    """

    def __init__(self) -> None:
        self._schedule: Schedule | None = None
        self._first, self._rates = 0, list[float]()

    def __call__(self, schedule: Schedule, step: int) -> float:
        """The rate of ``schedule`` at ``step``."""
        place = step - self._first
        if schedule is not self._schedule or not 0 <= place < len(self._rates):
            self._schedule, self._first, place = schedule, step, 0
            self._rates = schedule(np.arange(step, step + NUM_AHEAD)).tolist()
        return self._rates[place]


def warn_of_length(function: str, schedules: Schedules, num_steps: int, remedy: str) -> None:
    """Warn if a schedule has another number of steps than the run.

    Args:
        function: Name of the adapter, for the warning.
        schedules: Schedules of the run.
        num_steps: Number of optimizer steps that the trainer will have taken at the end of the run.
        remedy: How to change the schedule or the run.
    """
    for length in sorted({schedule.total_steps for schedule in distinct(schedules)} - {num_steps}):
        if length < num_steps:
            effect = f"the last {num_steps - length} steps keep the schedule's last rate"
        else:
            effect = "training ends before the rate has reached the end of the schedule"
        warnings.warn(
            f"{function}: the schedule has {length} steps, but the trainer takes {num_steps}: {effect}. {remedy}",
            stacklevel=3,
        )


def _by_name(function: str, given: Mapping[str, Schedule | None], groups: Groups) -> list[Schedule | None]:
    names = [group.get("name") for group in groups]
    if any(name is None for name in names):
        remedy = "Name each group, as in {'params': ..., 'name': 'head'}, or pass a list."
        _check.refuse(function, "schedule", "a list, because not every group has a name", names, remedy)
    for name in given:
        if name not in names:
            existing = sorted(set(map(str, names)))
            remedy = _check.suggestion(name, existing) or f"The groups are {existing}."
            _check.refuse(function, "schedule", "a mapping from the names of the groups", name, remedy)
    missing = [name for name in names if name not in given]
    if missing:
        remedy = "None keeps the rate of a group."
        _check.refuse(function, "schedule", f"given for the groups {missing}", sorted(given), remedy)
    return [given[str(name)] for name in names]
