"""The settings of a schedule in one line, for tables."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import Join, Part, Warmup
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.schedules.piecewise import Piecewise
from eigencurve.schedules.token_budget import OverTokens

# Fields whose public argument has another name.
ARGUMENTS = {"decay_factor": "factor"}


def describe_settings(schedule: Schedule) -> str:
    """The settings of ``schedule`` apart from its length and peak rate; ``"-"`` if it has none.

    >>> from eigencurve import constant, cosine, wsd
    >>> describe_settings(cosine(100, lr=0.1))
    'min_lr=0'
    >>> describe_settings(wsd(1000, lr=0.1, warmup_steps=50))
    '50 steps of linear warmup, 750 of constant, 200 of linear (min_lr=0)'
    """
    steps = _parts(schedule)
    if len(steps) > 1 or isinstance(schedule, OverTokens | Part):
        first, *rest = [f"{count:,} {{}}of {text}" for count, text in steps]
        return ", ".join([first.format("steps "), *(text.format("") for text in rest)])
    return _own(schedule) or "-"


def _parts(schedule: Schedule) -> list[tuple[int, str]]:
    """The number of steps of each part, and what it is."""
    if isinstance(schedule, Warmup):
        return [(schedule.num_steps, f"{schedule.shape} warmup"), *_parts(schedule.schedule)]
    if isinstance(schedule, Join):
        return [part for inner in schedule.schedules for part in _parts(inner)]
    if isinstance(schedule, OverTokens):
        return [(schedule.total_steps, ", ".join(text for _, text in _parts(schedule.schedule)) + " over tokens")]
    if isinstance(schedule, Part):
        return [(schedule.num_steps, ", ".join(text for _, text in _parts(schedule.schedule)))]
    own = _own(schedule)
    return [(schedule.total_steps, f"{schedule.kind} ({own})" if own else schedule.kind)]


def _own(schedule: Schedule) -> str:
    if isinstance(schedule, Piecewise):
        return f"{len(schedule.knots)} knots"
    if isinstance(schedule, Eigencurve):
        last = "" if schedule.min_lr is None else f", min_lr={schedule.min_lr:.4g}"
        return f"{len(schedule.times) - 1} intervals{last}"
    values = {f.name: getattr(schedule, f.name) for f in fields(schedule) if f.init}
    del values["total_steps"], values["lr"]
    return ", ".join(f"{ARGUMENTS.get(name, name)}={_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)
