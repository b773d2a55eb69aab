"""plan: from whatever you know about a run to the schedule that it should use."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eigencurve import _check
from eigencurve.planning.result import Plan
from eigencurve.schedules.units import Steps, whole_steps

if TYPE_CHECKING:
    from eigencurve.spectrum.noise import NoiseEstimate
    from eigencurve.spectrum.start import StartEstimate

# The kinds of sources: alone, and after "with".
KINDS = {
    "nothing": "without a source",
    "spectrum": "with a spectrum",
    "power law": "with a power law",
    "model": "with a model",
    "logs": "with logged runs",
}
EVERY, QUADRATIC = tuple(KINDS), ("spectrum", "power law", "model")
# An option that changes neither the answer nor its code for a kind of source does not apply to it.
APPLIES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("optimizer", "lr", "max_lr", "warmup_steps", "momentum", "nesterov", "weight_decay", "batch_size"), EVERY
    ),
    "noise": QUADRATIC,
    "initial_error": QUADRATIC,
}


def plan(
    *sources: Any,
    total_steps: Steps,
    optimizer: str | None = None,
    lr: float | None = None,
    max_lr: float | None = None,
    warmup_steps: int | None = None,
    momentum: float | None = None,
    nesterov: bool = False,
    weight_decay: float | None = None,
    noise: float | NoiseEstimate | None = None,
    initial_error: float | StartEstimate | None = None,
    batch_size: int | None = None,
) -> Plan:
    """Recommend a schedule from what you know about a run.

    >>> import eigencurve as ec
    >>> print(ec.plan(total_steps=50_000, optimizer="adamw").label)
    WSD, last 40 %

    Args:
        *sources: One of

            - nothing: published evidence (:func:`default_plan`);
            - a spectrum: the name of one in the zoo, the path of a file, a :class:`Spectrum`, a :class:`PowerLaw`, or
              the result of ``estimate_spectrum`` (:func:`plan_from_spectrum`);
            - the Hessian of a model, such as ``HessianOperator(model, loss_fn, batches)``: its spectrum and its
              gradient noise are measured first;
            - logged runs: one or more paths of logs, or :class:`LoggedRun`, or a :class:`Forecast`
              (:func:`plan_from_logs`).
        total_steps: Number of steps T of the run, including the warmup.
        optimizer: ``"sgd"``, ``"adam"`` or ``"adamw"``. By default SGD, or the optimizer in whose metric the spectrum
            was measured.
        lr: Peak rate that you want to use. By default it is part of the answer.
        max_lr: Highest rate allowed: of the recommendation, or with logs the peak rate of all schedules. By default the
            largest stable one of a spectrum.
        warmup_steps: Length of the warmup. By default that of the logs, or none with a spectrum.
        momentum: Momentum of SGD, or β₁ of Adam; by default 0 for SGD and 0.9 for Adam.
        nesterov: Whether it is Nesterov momentum.
        weight_decay: Weight decay of the run. By default that of the measurement, or 0.
        noise: Gradient noise σ² of every direction, or the result of ``estimate_noise``. By default that of the file.
        initial_error: Initial error of every direction, or the result of ``estimate_start``. By default that of the
            file.
        batch_size: Batch size of the run, to measure the noise of a model, to rescale measured noise, and for the
            generated code.

    An option either changes the answer or its code, and then ``inputs`` has it, or it is refused.
    :data:`eigencurve.planning.plan.APPLIES` lists the options that do not apply to every kind of source.

    Returns:
        The :class:`Plan`: ``verdict``, ``schedule``, ``table``, ``inputs`` and ``warnings``.

    Raises:
        ValueError: An option does not fit the sources, or an input is out of range.
        TypeError: A source is of none of these kinds.
    """
    kind = kind_of(sources)
    require_applicable("plan", kind, {"noise": noise, "initial_error": initial_error})
    settings: dict[str, Any] = {
        "optimizer": optimizer, "lr": lr, "max_lr": max_lr, "warmup_steps": warmup_steps, "momentum": momentum,
        "nesterov": nesterov, "weight_decay": weight_decay, "batch_size": batch_size,
    }  # fmt: skip
    if kind == "nothing":
        from eigencurve.planning.nothing import default_plan

        return default_plan(total_steps, **settings)
    if kind == "logs":
        from eigencurve.planning.logs import plan_from_logs

        return plan_from_logs(sources[0] if len(sources) == 1 else sources, total_steps, **settings)
    from eigencurve.planning.spectrum import measured_source, plan_from_spectrum

    source = sources[0]
    if kind == "model":
        steps = whole_steps("plan", "total_steps", total_steps, minimum=2)
        source = measured_source(source, steps, weight_decay, batch_size, measure_noise=noise is None)
        settings["weight_decay"] = None  # the source has it, with its origin
    return plan_from_spectrum(source, total_steps, noise=noise, initial_error=initial_error, **settings)


def require_applicable(function: str, kind: str, given: Mapping[str, Any]) -> None:
    """Refuse an option that does nothing for a kind of source.

    Args:
        function: Name of the function, for the message.
        kind: One of ``KINDS``.
        given: Options by name; None and False count as not given.
    """
    for name, value in given.items():
        if value is not None and value is not False and kind not in APPLIES[name]:
            *words, last = (KINDS[where].removeprefix("with ") for where in APPLIES[name])
            remedy = f"It applies to {', '.join(words)} and {last}; pass one, or leave it out."
            _check.refuse(function, name, f"left out {KINDS[kind]}", value, remedy)


def kind_of(sources: Sequence[Any]) -> str:
    """The kind of the sources of a plan, one of ``KINDS``."""
    if not sources:
        return "nothing"
    runs = [_is_run(source) for source in sources]
    if all(runs):
        return "logs"
    if any(runs):
        log, other = (_check.shown(sources[runs.index(kind)]) for kind in (True, False))
        remedy = f"{log} is a log and {other} is none: plan from one kind."
        _check.refuse("plan", "sources", "logs of runs, or one spectrum", f"{len(sources)} sources", remedy)
    if len(sources) > 1:
        remedy = "Pass several logs, or one spectrum."
        _check.refuse("plan", "sources", "one spectrum", f"{len(sources)} sources", remedy)
    return _kind_of_one(sources[0])


def _kind_of_one(source: Any) -> str:
    from eigencurve.spectrum.power_law import PowerLaw

    if isinstance(getattr(source, "raw", source), PowerLaw):
        return "power law"
    is_operator = callable(source) and hasattr(source, "dim") and hasattr(source, "fingerprint")
    return "model" if is_operator else "spectrum"


def _is_run(source: Any) -> bool:
    from eigencurve.forecast.forecast import Forecast
    from eigencurve.forecast.formats.recognise import is_log
    from eigencurve.forecast.runs import LoggedRun
    from eigencurve.planning.spectrum import is_zoo_name

    if not isinstance(source, str | os.PathLike):
        return isinstance(source, LoggedRun | Forecast)
    return not is_zoo_name(Path(source)) and is_log(Path(source))
