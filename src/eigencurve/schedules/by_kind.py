"""Schedules by the name of their kind, with settings by name: for command lines, menus and experiments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from eigencurve import _check
from eigencurve._check import Arg
from eigencurve.schedules import classic, decays, practical
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import warmup
from eigencurve.schedules.eigencurve import curve_of
from eigencurve.schedules.one_cycle import one_cycle
from eigencurve.schedules.wsd import wsd, wsd_cycles
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum

FACTORIES: dict[str, Callable[..., Schedule]] = {"eigencurve": curve_of} | {
    factory.__name__: factory
    for factory in (
        classic.constant, classic.cosine, practical.cosine_power, practical.elastic_step,
        classic.exponential, classic.hold_then_decay, decays.inverse_sqrt, classic.inverse_time, classic.linear,
        classic.multistep, one_cycle, decays.polynomial, decays.rex, classic.step_decay, wsd, wsd_cycles,
    )
}  # fmt: skip
COMMON = ("spectrum", "total_steps", "lr", "warmup_steps", "warmup_shape")


def schedule_of_kind(
    kind: str,
    total_steps: int,
    lr: float,
    spectrum: Spectrum | PowerLaw | None = None,
    warmup_steps: int = 0,
    warmup_shape: str = "linear",
    **settings: Any,
) -> Schedule:
    """Make a schedule with the function called ``kind``.

    Args:
        kind: One of the keys of ``FACTORIES``.
        total_steps: Total number of steps T, including the warmup.
        lr: Initial rate, or the peak after a warmup.
        spectrum: Prepared spectrum; required for ``"eigencurve"``, ignored for the other kinds.
        warmup_steps: Number of steps of warmup before the schedule.
        warmup_shape: Shape of the warmup; see :func:`warmup`.
        **settings: The function's own arguments, by name.

    Raises:
        ValueError: A setting is unknown to the kind, or a required one is missing.

    >>> schedule_of_kind("cosine", 100, lr=0.1, min_lr=0.001)
    Cosine(total_steps=100, lr=0.1, min_lr=0.001)
    >>> schedule_of_kind("linear", 100, lr=0.1, warmup_steps=10).total_steps
    100
    """
    _check.choice("schedule", "kind", kind, tuple(FACTORIES))
    rise = _check.whole("schedule", "warmup_steps", warmup_steps, minimum=0)
    total = _check.whole("schedule", "total_steps", total_steps, minimum=1)
    if rise >= total:
        _check.refuse("schedule", "warmup_steps", ("< ", Arg("total_steps"), f" = {total}"), rise)
    require_settings(kind, settings)
    arguments = {"total_steps": total - rise, "lr": lr, **settings}
    if kind == "eigencurve":
        if spectrum is None:
            remedy = "Measure one, take one from the zoo, assume a power law, or choose another kind."
            _check.refuse("schedule", "spectrum", "given for kind 'eigencurve'", None, remedy)
        arguments["spectrum"] = spectrum
    body = FACTORIES[kind](**arguments)
    return warmup(body, rise, warmup_shape) if rise else body


def settings_of(kind: str) -> dict[str, bool]:
    """The names of a kind's own settings, each with whether it is required."""
    parameters = inspect.signature(FACTORIES[kind]).parameters.values()
    return {p.name: p.default is p.empty for p in parameters if p.name not in COMMON}


def require_settings(kind: str, settings: Mapping[str, Any]) -> None:
    """Refuse settings that a kind does not have, and the lack of a required one.

    Raises:
        ValueError: ``kind`` or a name in ``settings`` is unknown, or a required setting is missing.
    """
    _check.choice("schedule", "kind", kind, tuple(FACTORIES))
    own = settings_of(kind)
    for name, value in settings.items():
        if name not in own:
            listed = [part for setting in own for part in (", ", Arg(setting))][1:] or ["none"]
            remedy = ("Its settings: ", *listed, ".")
            _check.refuse("schedule", name, f"left out for kind {kind!r}", value, remedy)
    for name, needed in own.items():
        if needed and name not in settings:
            _check.refuse("schedule", name, f"given for kind {kind!r}", None)


def own_settings(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``settings`` that a schedule of this kind takes; a value of None counts as not given.

    >>> own_settings("cosine_power", {"min_lr": None, "alpha": 2.0, "momentum": 0.9})
    {'alpha': 2.0}
    """
    _check.choice("schedule", "kind", kind, tuple(FACTORIES))
    own = settings_of(kind)
    return {name: value for name, value in settings.items() if name in own and value is not None}


def usual_settings(kind: str, lr: float) -> dict[str, Any]:
    """Values for the required settings of a kind, if there are usual ones.

    Exponential and inverse time decay never reach 0; they usually end at lr/1000 and lr/100.

    >>> usual_settings("inverse_time", lr=0.1)
    {'min_lr': 0.001}
    """
    usual: dict[str, dict[str, Any]] = {
        "exponential": {"min_lr": lr / 1000},
        "inverse_time": {"min_lr": lr / 100},
    }
    return usual.get(kind, {})
