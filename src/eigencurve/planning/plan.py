"""plan: from whatever you know about a run to the schedule that it should use."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from eigencurve import _check
from eigencurve.forecast.fit import fit_runs
from eigencurve.forecast.forecast import Forecast
from eigencurve.forecast.logs import load_run
from eigencurve.forecast.runs import LoggedRun
from eigencurve.planning.answer import Plan
from eigencurve.planning.doubts import metric_doubt
from eigencurve.planning.from_evidence import plan_from_evidence
from eigencurve.planning.from_runs import plan_from_forecast
from eigencurve.planning.from_spectrum import plan_from_subject
from eigencurve.planning.inputs import inputs_of
from eigencurve.planning.limits import optimizer_of, require_rates
from eigencurve.planning.options import kind_of, require_applicable
from eigencurve.planning.subject import Subject, file_subject, zoo_subject
from eigencurve.planning.training import OPTIMIZERS, training_of
from eigencurve.schedules.units import Steps, whole_steps
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.spectrum.start import StartEstimate
from eigencurve.spectrum.zoo import ZOO


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
    >>> print(ec.plan(total_steps=50_000, optimizer="adamw").name)
    WSD, last 40 %

    Args:
        *sources: What is known, one of

            - nothing: published evidence;
            - a spectrum: the name of one in the zoo, the path of a file, a :class:`Spectrum`, a :class:`PowerLaw`, or
              the result of ``estimate_spectrum``;
            - the Hessian of a model, such as ``HessianOperator(model, loss_fn, batches)``: its spectrum and its
              gradient noise are measured first;
            - logged runs: one or more paths of logs, or :class:`LoggedRun`, or a :class:`Forecast`.
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
    :data:`eigencurve.planning.options.APPLIES` lists the options that do not apply to every kind of source.

    Returns:
        The :class:`~eigencurve.planning.answer.Plan`: ``verdict``, ``schedule``, ``table`` and ``inputs``.

    Raises:
        ValueError: An option does not fit the sources, or an input is out of range.
        TypeError: A source is of none of these kinds.
    """
    steps = whole_steps("plan", "total_steps", total_steps, minimum=2)
    kind = kind_of(sources)
    require_applicable("plan", kind, {"noise": noise, "initial_error": initial_error})
    if optimizer is not None:
        _check.choice("plan", "optimizer", optimizer, OPTIMIZERS)
    rate, highest = require_rates("plan", lr, max_lr)
    rise = None if warmup_steps is None else _check.whole("plan", "warmup_steps", warmup_steps, minimum=0)
    if rise is not None and rise >= steps:
        _check.refuse("plan", "warmup_steps", f"< total_steps = {steps}", rise)
    if kind == "nothing":
        training = training_of(optimizer or "sgd", momentum, nesterov, weight_decay, batch_size, _assumed(optimizer))
        return plan_from_evidence(steps, training, rate, rise, highest)
    if kind == "logs":
        training = training_of(optimizer, momentum, nesterov, weight_decay, batch_size)
        _require_one_rate(lr, max_lr)
        forecast = sources[0] if isinstance(sources[0], Forecast) else fit_runs([_run(source) for source in sources])
        return plan_from_forecast(forecast, steps, training, _peak_rate(forecast, rate, highest), rise)
    if kind == "model":
        from eigencurve.planning.from_operator import operator_subject  # imports PyTorch

        known = operator_subject(sources[0], steps, weight_decay, batch_size, measure_noise=noise is None)
    else:
        known = _subject(sources[0], weight_decay)
    subject = _with_measured(known, noise, initial_error)
    _require_metric(subject, optimizer)
    sigma2 = _number("noise", noise, NoiseEstimate)
    inputs = inputs_of(subject, sigma2, _number("initial_error", initial_error, StartEstimate), batch_size)
    return plan_from_subject(
        subject, steps, optimizer, inputs, momentum, nesterov, rate, highest, rise or 0, batch_size
    )


def _require_metric(subject: Subject, optimizer: str | None) -> None:
    name = optimizer_of(subject) if optimizer is None else optimizer
    if doubt := metric_doubt(subject, name):
        _check.refuse("plan", "optimizer", "that of the spectrum", name, doubt)


def _assumed(optimizer: str | None) -> dict[str, str]:
    return {"optimizer": "assumed"} if optimizer is None else {}


def _number(name: str, value: Any, estimate: type) -> float | None:
    """A given number; None if nothing or an estimate is given."""
    return None if value is None or isinstance(value, estimate) else _check.at_least("plan", name, value, 0.0)


def _run(source: Any) -> LoggedRun:
    return source if isinstance(source, LoggedRun) else load_run(source)


def _subject(source: Any, weight_decay: float | None) -> Subject:
    if isinstance(source, Subject):
        return source if weight_decay is None else replace(source, weight_decay=weight_decay, decay_source="given")
    if isinstance(source, str | os.PathLike):
        name = str(source)
        if name in ZOO or not (Path(source).suffix or Path(source).exists()):
            return zoo_subject(name, weight_decay)
        return file_subject(Path(source), weight_decay)
    decay, origin = (0.0, "assumed") if weight_decay is None else (weight_decay, "given")
    if isinstance(source, PowerLaw):
        return Subject(f"power law, exponent {source.alpha:g}", source, decay, decay_source=origin)
    if isinstance(source, Spectrum):
        return Subject("spectrum", source, decay, decay_source=origin)
    if hasattr(source, "measurement") and isinstance(getattr(source, "spectrum", None), Spectrum):
        known = source.measurement()
        decay, origin = (known.weight_decay, "measured") if weight_decay is None else (decay, origin)
        return Subject("measured spectrum", source.spectrum, decay, known, decay_source=origin)
    kinds = "a spectrum, the path of one, logged runs or their paths"
    raise _check.ArgumentTypeError("plan", "sources", kinds, source)


def _with_measured(subject: Subject, noise: Any, start: Any) -> Subject:
    """``subject`` with noise and start that were measured apart from its file."""
    known_noise = noise if isinstance(noise, NoiseEstimate) else subject.noise
    known_start = start if isinstance(start, StartEstimate) else subject.start
    return replace(subject, noise=known_noise, start=known_start)


def _peak_rate(forecast: Forecast, lr: float | None, max_lr: float | None) -> float | None:
    """The peak rate that was asked for, if it is near the logged ones."""
    argument, rate = ("max_lr", max_lr) if lr is None else ("lr", lr)
    return None if rate is None else forecast.fitted.logged.require_near("plan", argument, rate)


def _require_one_rate(lr: float | None, max_lr: float | None) -> None:
    if lr is not None and max_lr is not None:
        _check.refuse("plan", "max_lr", "left out with logged runs if 'lr' is given", max_lr)
