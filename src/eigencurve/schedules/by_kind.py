"""Every schedule by the name of its kind, for menus and command lines."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.classic import (
    constant,
    cosine,
    exponential,
    hold_then_decay,
    inverse_time,
    linear,
    multistep,
    step_decay,
    wsd,
)
from eigencurve.schedules.compose import warmup
from eigencurve.schedules.eigencurve import eigencurve
from eigencurve.schedules.practical import cosine_power, elastic_step
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum

FACTORIES: dict[str, Callable[..., Schedule]] = {
    factory.__name__: factory
    for factory in (
        eigencurve, constant, cosine, cosine_power, elastic_step, exponential, hold_then_decay, inverse_time, linear,
        multistep, step_decay, wsd,
    )
}  # fmt: skip
COMMON = ("spectrum", "total_steps", "lr")


def schedule_of_kind(
    kind: str,
    total_steps: int,
    lr: float,
    spectrum: Spectrum | PowerLaw | None = None,
    warmup_steps: int = 0,
    **settings: Any,
) -> Schedule:
    """The schedule that the function called ``kind`` makes.

    Args:
        kind: one of the keys of ``FACTORIES``.
        total_steps: T, the warmup's steps among them.
        lr: the initial rate, or the peak after a warmup.
        spectrum: prepared, for ``"eigencurve"``.
        warmup_steps: of linear warmup before the schedule.
        **settings: the function's own arguments by name.

    Raises:
        ValueError: a setting that the kind has not, or lacks.

    >>> schedule_of_kind("cosine", 100, lr=0.1, min_lr=0.001)
    Cosine(total_steps=100, lr=0.1, min_lr=0.001)
    >>> schedule_of_kind("linear", 100, lr=0.1, warmup_steps=10).total_steps
    100
    """
    _check.choice("schedule", "kind", kind, tuple(FACTORIES))
    rise = _check.whole("schedule", "warmup_steps", warmup_steps, minimum=0)
    total = _check.whole("schedule", "total_steps", total_steps, minimum=1)
    if rise >= total:
        _check.refuse("schedule", "warmup_steps", f"< total_steps = {total}", rise)
    arguments = {"total_steps": total - rise, "lr": lr, **_checked(kind, settings)}
    if kind == "eigencurve":
        if spectrum is None:
            remedy = "Measure one, take one of the zoo, or assume a power law; or choose another kind."
            _check.refuse("schedule", "spectrum", "given for kind 'eigencurve'", None, remedy)
        arguments["spectrum"] = spectrum
    body = FACTORIES[kind](**arguments)
    return warmup(body, rise) if rise else body


def settings_of(kind: str) -> dict[str, bool]:
    """The names of a kind's own settings, and whether each must be given."""
    parameters = inspect.signature(FACTORIES[kind]).parameters.values()
    return {p.name: p.default is p.empty for p in parameters if p.name not in (*COMMON, "warmup_steps")}


def _checked(kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    known = settings_of(kind)
    for name in settings:
        if name not in known:
            options = ", ".join(known) or "none"
            _check.refuse("schedule", name, f"left out for kind {kind!r}", settings[name], f"Its settings: {options}.")
    for name, needed in known.items():
        if needed and name not in settings:
            _check.refuse("schedule", name, f"given for kind {kind!r}", None)
    return settings
