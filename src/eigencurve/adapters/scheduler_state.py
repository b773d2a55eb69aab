"""The saved state of a ScheduleLR, checked before it is used."""

from __future__ import annotations

from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.kinds import schedule_from_dict

VERSIONS = (1, 2)
STATE_NAMES = {
    1: ("schedule", "last_epoch", "step_count", "ratios"),
    2: ("schedules", "last_epoch", "step_count", "ratios"),
}
REMEDY = "The state is damaged: load another checkpoint."


def checked_state(function: str, state: Any) -> dict[str, Any]:
    """A copy of ``state`` with whole steps and with finite, non-negative ratios and weight decays.

    Raises:
        TypeError: If a number has another type, such as a fractional step.
        ValueError: If the state is of another kind or version, or if a number is negative, infinite or NaN.
    """
    version = state.get("version") if isinstance(state, dict) else None
    if version not in VERSIONS or any(name not in state for name in STATE_NAMES[version]):
        _check.refuse(function, "state_dict", f"the state of a ScheduleLR, version {VERSIONS[-1]} or older", state)
    checked = dict(state)
    for name in ("last_epoch", "step_count"):
        checked[name] = _check.whole(function, name, checked[name], 0, REMEDY, _check.MOST_STEPS)
    checked["ratios"] = _numbers(function, "ratios", checked["ratios"])
    if checked.get("weight_decays") is not None:
        checked["weight_decays"] = _numbers(function, "weight_decays", checked["weight_decays"])
    _require_one_length(function, checked)
    return checked


def saved_schedules(state: dict[str, Any]) -> list[Schedule | None]:
    """The schedule of each group, or the one that all groups share."""
    saved = [state["schedule"]] if state["version"] == 1 else state["schedules"]
    return [None if settings is None else schedule_from_dict(settings) for settings in saved]


def _numbers(function: str, name: str, values: Any) -> list[float]:
    if not isinstance(values, list | tuple):
        _check.wrong_type(function, name, "a list with one number per parameter group", values, REMEDY)
    return [_check.at_least(function, name, value, 0.0, REMEDY) for value in values]


def _require_one_length(function: str, state: dict[str, Any]) -> None:
    """Refuse lists that do not have one entry for each group; one schedule stands for all groups."""
    count, schedules = len(state["ratios"]), state.get("schedules", [None])
    decays = state.get("weight_decays")
    for name, values, lengths in (
        ("schedules", schedules, {1, count}),
        ("weight_decays", state["ratios"] if decays is None else decays, {count}),
    ):
        if not isinstance(values, list | tuple) or len(values) not in lengths:
            _check.refuse(function, name, f"a list with one entry for each of the {count} ratios", values, REMEDY)
