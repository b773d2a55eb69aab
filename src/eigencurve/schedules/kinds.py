"""The kinds of schedules by name: made from settings, restored from dictionaries, and described in one line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from eigencurve import _check
from eigencurve._check import Arg
from eigencurve.schedules import decays, staircases
from eigencurve.schedules.base import VERSION, Schedule
from eigencurve.schedules.compose import Join, Part, Warmup, warmup
from eigencurve.schedules.eigencurve import Eigencurve, curve_of
from eigencurve.schedules.one_cycle import OneCycle, one_cycle
from eigencurve.schedules.piecewise import Piecewise
from eigencurve.schedules.token_budget import OverTokens
from eigencurve.schedules.wsd import wsd, wsd_cycles
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum

KINDS: dict[str, type[Schedule]] = {
    cls.kind: cls
    for cls in (
        decays.Constant, decays.InverseTime, decays.Exponential, decays.Cosine, decays.Linear, staircases.StepDecay,
        staircases.MultiStep, staircases.HoldThenDecay, decays.CosinePower, staircases.ElasticStep, Warmup,
        Join, Part, Eigencurve, Piecewise, decays.Polynomial, decays.OneMinusPower,
        decays.InverseSqrt, decays.Rex, OneCycle, OverTokens,
    )
}  # fmt: skip
FACTORIES: dict[str, Callable[..., Schedule]] = {"eigencurve": curve_of} | {
    factory.__name__: factory
    for factory in (
        decays.constant, decays.cosine, decays.cosine_power, staircases.elastic_step,
        decays.exponential, staircases.hold_then_decay, decays.inverse_sqrt, decays.inverse_time, decays.linear,
        staircases.multistep, one_cycle, decays.polynomial, decays.rex, staircases.step_decay, wsd, wsd_cycles,
    )
}  # fmt: skip
COMMON = ("spectrum", "total_steps", "lr", "warmup_steps", "warmup_shape")
# Fields whose public argument has another name.
ARGUMENTS = {"decay_factor": "factor"}


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
    settings = {field.name: field.default is MISSING for field in fields(cls) if field.init}
    wrong = sorted(set(given) - set(settings) | {name for name, needed in settings.items() if needed} - set(given))
    if wrong:
        remedy = f"See {_check.shown(wrong)}."
        _check.refuse("schedule_from_dict", "settings", f"exactly those of {cls.kind!r}", sorted(given), remedy)
    return {name: _value(value) for name, value in given.items()}


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return schedule_from_dict(value)
    return tuple(_value(item) for item in value) if isinstance(value, list) else value


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


def csv_bytes(schedule: Schedule) -> bytes:
    r"""Encode a schedule as CSV: the header ``step,lr``, then one exact rate per step.

    >>> from eigencurve.schedules.decays import linear
    >>> csv_bytes(linear(2, lr=1.0))
    b'step,lr\n0,1.0\n1,0.5\n'
    """
    rows = [f"{step},{rate!r}" for step, rate in enumerate(schedule.values().tolist())]
    return ("\n".join(["step,lr", *rows]) + "\n").encode()
