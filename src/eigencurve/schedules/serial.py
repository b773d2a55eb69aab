"""Restoring schedules from the plain dictionaries of :meth:`Schedule.to_dict`."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from eigencurve import _check
from eigencurve.schedules import classic, compose, decays, practical
from eigencurve.schedules.base import VERSION, Schedule
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.schedules.one_cycle import OneCycle
from eigencurve.schedules.piecewise import Piecewise
from eigencurve.schedules.token_budget import OverTokens

KINDS: dict[str, type[Schedule]] = {
    cls.kind: cls
    for cls in (
        classic.Constant, classic.InverseTime, classic.Exponential, classic.Cosine, classic.Linear, classic.StepDecay,
        classic.MultiStep, classic.HoldThenDecay, practical.CosinePower, practical.ElasticStep, compose.Warmup,
        compose.Join, compose.Part, Eigencurve, Piecewise, decays.Polynomial, decays.OneMinusPower,
        decays.InverseSqrt, decays.Rex, OneCycle, OverTokens,
    )
}  # fmt: skip


def schedule_from_dict(settings: dict[str, Any]) -> Schedule:
    """Restore the schedule that :meth:`Schedule.to_dict` wrote, also from JSON.

    Raises:
        ValueError: The kind or version is unknown, a setting is missing or unexpected, or a value is invalid.

    >>> from eigencurve import cosine
    >>> schedule_from_dict(cosine(100, lr=0.1).to_dict())
    Cosine(total_steps=100, lr=0.1, min_lr=0.0)
    """
    if not isinstance(settings, dict):
        _check.wrong_type("schedule_from_dict", "settings", "a dict", settings)
    kind = settings.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        _check.refuse("schedule_from_dict", "kind", "one of " + ", ".join(KINDS), kind)
    if settings.get("version") != VERSION:
        remedy = "Upgrade eigencurve to read it."
        _check.refuse("schedule_from_dict", "version", f"{VERSION}", settings.get("version"), remedy)
    return KINDS[kind](**_arguments(KINDS[kind], {k: v for k, v in settings.items() if k not in ("kind", "version")}))


def _arguments(cls: type[Schedule], given: dict[str, Any]) -> dict[str, Any]:
    known = [f for f in fields(cls) if f.init]
    needed = {f.name for f in known if f.default is MISSING}
    wrong = sorted((set(given) - {f.name for f in known}) | (needed - set(given)))
    if wrong:
        _check.refuse(
            "schedule_from_dict",
            "settings",
            f"exactly those of {cls.kind!r}",
            sorted(given),
            f"See {_check.shown(wrong)}.",
        )
    return {name: _value(value) for name, value in given.items()}


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return schedule_from_dict(value)
    return tuple(_value(item) for item in value) if isinstance(value, list) else value
