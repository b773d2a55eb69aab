"""Which schedule each parameter group of an optimizer follows: one for all, or one for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule, require_schedule

# One schedule for all groups; or one per group, in order or by the groups' names, with None for a rate that stays.
Schedules = Schedule | Sequence[Schedule | None] | Mapping[str, Schedule | None]
Groups = Sequence[Mapping[str, Any]]


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
        found = _by_name(function, given, groups)
    elif isinstance(given, Sequence) and not isinstance(given, str):
        found = list(given)
    else:
        need = "a Schedule, a list with one per parameter group, or a mapping from the groups' names"
        _check.wrong_type(function, "schedule", need, given)
    for schedule in found:
        if schedule is not None:
            require_schedule(function, schedule)
    if len(found) != len(groups):
        _check.refuse(
            function, "schedule", f"a list of {len(groups)}, one per parameter group", f"{len(found)} of them"
        )
    if all(schedule is None for schedule in found):
        _check.refuse(function, "schedule", "a Schedule for at least one group", given)
    return found


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


def first_schedule(schedules: Sequence[Schedule | None]) -> Schedule:
    """The schedule of the first group that has one."""
    return next(schedule for schedule in schedules if schedule is not None)


def distinct(schedules: Schedules) -> list[Schedule]:
    """The schedules in ``schedules``, without the groups that have none."""
    if isinstance(schedules, Schedule):
        return [schedules]
    every = schedules.values() if isinstance(schedules, Mapping) else schedules
    return [schedule for schedule in every if schedule is not None]


def _by_name(function: str, given: Mapping[str, Schedule | None], groups: Groups) -> list[Schedule | None]:
    names = [group.get("name") for group in groups]
    if any(name is None for name in names):
        remedy = "Name each group, as in {'params': ..., 'name': 'head'}, or pass a list."
        _check.refuse(function, "schedule", "a list, because not every group has a name", names, remedy)
    for name in given:
        if name not in names:
            close = get_close_matches(str(name), [str(n) for n in names], n=1)
            remedy = f"Did you mean {close[0]!r}?" if close else f"The groups are {sorted(set(map(str, names)))}."
            _check.refuse(function, "schedule", "a mapping from the names of the groups", name, remedy)
    missing = [name for name in names if name not in given]
    if missing:
        remedy = "None keeps the rate of a group."
        _check.refuse(function, "schedule", f"given for the groups {missing}", sorted(given), remedy)
    return [given[str(name)] for name in names]
