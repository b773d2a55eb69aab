"""plan_from_spectrum: a plan from a measured spectrum, by the regret of schedules on the noisy quadratic."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from eigencurve import _check
from eigencurve.planning.baselines import (
    EIGENCURVE,
    EIGENCURVE_OPTIMAL,
    LABELS,
    OPTIMUM,
    labelled,
    shape_in_words,
    usual_schedules,
)
from eigencurve.planning.result import OPTIMIZERS, Evidence, Plan, PlanInput, Source, Training, training_of
from eigencurve.planning.warnings import (
    RateLimit,
    checked_run,
    metric_warning,
    negative_warning,
    rate_limit,
    require_plausible,
    settling_warning,
)
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.comparison import ComparisonRow, ComparisonTable, ranked
from eigencurve.schedules.compose import after_warmup
from eigencurve.schedules.sampling import peak_rate
from eigencurve.schedules.units import Steps
from eigencurve.spectrum.measurement import MeasurementRecord
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.source import USUAL_DECAY, InputSource, SpectrumSource, file_source, with_inputs, zoo_source
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.spectrum.start import StartEstimate
from eigencurve.spectrum.zoo import ZOO
from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.nodes import Nodes
from eigencurve.theory.optimal import QUICK, Search, search
from eigencurve.theory.quadratic import NoisyQuadratic
from eigencurve.theory.tuning import best_scale, rescaled, tune

WSD = "wsd_20"
# Schedules in the order of preference among equals: the simplest first.
SIMPLEST = ("cosine_0", "linear_0", WSD, "elastic_step", EIGENCURVE, OPTIMUM)
# A simpler schedule is preferred if its mean regret is at most this much larger.
CLOSE = 0.01
# The usual schedules of ``compare``.
COMPARED = (
    "constant", "linear_0", "cosine_0", "step_decay", "elastic_step", "exponential", "inverse_time", WSD, EIGENCURVE,
    EIGENCURVE_OPTIMAL,
)  # fmt: skip
# How far an assumed input may be off, and the least that a measured one is.
ASSUMED_FACTOR, MEASURED_FACTOR = 10.0, 1.1
# Peak rates whose loss is within this fraction of the best are equally good.
NEARLY_BEST = 0.05
# Fractions of the best rate, and of the limit, that are tried for the range.
FRACTIONS = np.geomspace(0.02, 50, 60)
# results/cifar10-paired.md: without momentum, the recommendation is below WSD in every seed.
NOT_QUADRATIC = (
    "The loss of a network is only roughly quadratic: a small ResNet-18, trained from scratch without momentum, was"
    " more accurate with WSD than with a recommendation like this one. If you can afford two runs, compare them."
)
# A run this much shorter than the condition number leaves most directions far from their minimum.
SHORT = 3.0
RULE = Evidence(
    "quadratic",
    "The simplest schedule whose mean regret on the noisy quadratic, over the errors of its inputs, is within 1 % of "
    "the least.",
)


class MeasuredSpectrum(Protocol):
    """The result of :func:`eigencurve.hessian.estimate_spectrum`."""

    @property
    def spectrum(self) -> Spectrum: ...  # noqa: D102
    def measurement(self) -> MeasurementRecord: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class Scenario:
    """One guess at the noise relative to the start.

    Attributes:
        factor: Factor on the noise.
        losses: Expected loss of every schedule, at the rate that is best for the nominal noise.
        best: Least loss of any of them at its own best rate for this noise.
    """

    factor: float
    losses: Mapping[str, float]
    best: float

    def regret(self, name: str) -> float:
        """How much worse a schedule is than the best one, relative to that."""
        return self.losses[name] / self.best - 1


@dataclass(frozen=True)
class _Rates:
    """The best peak rate of a schedule, the range around it, and what limits it."""

    best: float
    low: float
    high: float
    limit: str


def plan_from_spectrum(
    source: SpectrumSource | Spectrum | PowerLaw | MeasuredSpectrum | str | os.PathLike[str],
    total_steps: Steps,
    *,
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
    """The schedule whose loss is closest to the best one, on average over what the uncertain inputs may be.

    Args:
        source: Spectrum: the name of one in the zoo, the path of a file, a :class:`Spectrum`, a :class:`PowerLaw`, the
            result of ``estimate_spectrum``, or a :class:`~eigencurve.spectrum.source.SpectrumSource`.
        total_steps: Number of steps T, including the warmup.
        optimizer: ``"sgd"``, ``"adam"`` or ``"adamw"``. The latter two need a spectrum in their own metric. By default
            the optimizer of the spectrum's metric.
        lr: Peak rate of the run. By default the best one of the model, at most ``max_lr``.
        max_lr: Largest rate. By default the largest stable one.
        warmup_steps: Number of warmup steps before the schedule; by default none.
        momentum: Momentum of SGD, or β₁ of Adam; by default 0 for SGD and 0.9 for Adam.
        nesterov: Whether it is Nesterov momentum.
        weight_decay: Weight decay of the run. By default that of the measurement, or 0.
        noise: Gradient noise σ² of every direction, or a measurement. By default that of the source.
        initial_error: Initial error of every direction, or a measurement. By default that of the source.
        batch_size: Batch size of the run, to rescale measured noise, and for the generated code.
    """
    steps, lr, max_lr, rise = checked_run(total_steps, lr, max_lr, warmup_steps)
    spectrum = with_inputs(spectrum_source(source, weight_decay), noise, initial_error, batch_size)
    training = training_for(spectrum, optimizer, momentum, nesterov, batch_size)
    name = str(training.optimizer)
    if sentence := metric_warning(spectrum, name):
        _check.refuse("plan", "optimizer", "that of the spectrum", name, sentence)
    stable = rate_limit(spectrum, name, training.momentum, nesterov)
    require_plausible("plan", name, stable, lr=lr, max_lr=max_lr)
    return _plan(spectrum, steps, training, stable, lr, max_lr, rise or 0)


def spectrum_source(source: Any, weight_decay: float | None = None) -> SpectrumSource:
    """Any kind of spectrum as a :class:`SpectrumSource`; None keeps the weight decay of its measurement."""
    if isinstance(source, SpectrumSource):
        return source if weight_decay is None else replace(source, weight_decay=weight_decay, decay_source="given")
    if isinstance(source, str | os.PathLike):
        name, path = str(source), Path(source)
        return zoo_source(name, weight_decay) if is_zoo_name(path) else file_source(path, weight_decay)
    decay = weight_decay or 0.0
    origin: InputSource = "assumed" if weight_decay is None else "given"
    if isinstance(source, PowerLaw):
        return SpectrumSource(f"power law, exponent {source.alpha:g}", source, decay, decay_source=origin)
    if isinstance(source, Spectrum):
        return SpectrumSource("spectrum", source, decay, decay_source=origin)
    if hasattr(source, "measurement") and isinstance(getattr(source, "spectrum", None), Spectrum):
        record = source.measurement()
        if weight_decay is None:
            decay, origin = record.weight_decay, "measured"
        return SpectrumSource("measured spectrum", source.spectrum, decay, record, decay_source=origin)
    return _check.wrong_type("plan", "sources", "a spectrum, the path of one, logged runs or their paths", source)


def is_zoo_name(path: Path) -> bool:
    """Whether a word is the name of a spectrum in the zoo, perhaps misspelt, and no file."""
    return str(path) in ZOO or not (path.suffix or path.exists())


def measured_source(
    operator: Any, total_steps: int, weight_decay: float | None, batch_size: int | None, measure_noise: bool
) -> SpectrumSource:
    """The spectrum of an operator, with the gradient noise if the operator has examples.

    Args:
        operator: ``HessianOperator``, ``GaussNewtonOperator``, or one of them preconditioned by an optimizer; any other
            operator of :func:`eigencurve.hessian.estimate_spectrum` has no examples, so its noise is not measured.
        total_steps: Number of steps T of the run.
        weight_decay: Weight decay of the run; by default that of the optimizer, or 5e-4.
        batch_size: Batch size of the run, for the noise.
        measure_noise: Whether to measure the noise; False if it is given.
    """
    from eigencurve.hessian import estimate_noise, estimate_spectrum  # imports PyTorch

    has_examples = hasattr(getattr(operator, "operator", operator), "num_examples")
    if has_examples and measure_noise and batch_size is None:
        remedy = ("The gradient noise of a batch is measured too; or pass ", _check.Arg("noise"), ".")
        _check.refuse("plan", "batch_size", "given with the Hessian of a model", None, remedy)
    decay = decay_of(operator) if weight_decay is None else weight_decay
    estimate = estimate_spectrum(operator, weight_decay=decay, total_steps=total_steps)
    with_noise = has_examples and measure_noise and batch_size is not None
    noise = estimate_noise(operator, estimate, batch_size) if with_noise and batch_size is not None else None
    unset: InputSource = "measured" if getattr(operator, "eigenvalue_shift", 0.0) else "assumed"
    return SpectrumSource(
        "measured spectrum", estimate.spectrum, estimate.weight_decay, estimate.measurement(), noise,
        decay_source=unset if weight_decay is None else "given",
    )  # fmt: skip


def decay_of(operator: Any) -> float:
    """The weight decay to add to every eigenvalue, which must be positive.

    If the products contain the decay, nothing should be added. Then it only sets the resolution near zero, and a
    hundredth of the smallest decay changes no eigenvalue by more than 1 %.
    """
    shift, smallest = getattr(operator, "eigenvalue_shift", 0.0), getattr(operator, "smallest_decay", 0.0)
    return float(shift or smallest / 100 or USUAL_DECAY)


def quadratic_of(source: SpectrumSource, momentum: float = 0.0, nesterov: bool = False) -> NoisyQuadratic:
    """The noisy quadratic with the spectrum, the noise and the start of a source."""
    return NoisyQuadratic(source.spectrum, source.noise_levels, source.initial_errors, momentum, nesterov)


def compare_schedules(
    source: SpectrumSource,
    total_steps: int,
    momentum: float = 0.0,
    nesterov: bool = False,
    lr: float | None = None,
    max_lr: float | None = None,
    best: bool = False,
    own: Mapping[str, Schedule] | None = None,
) -> ComparisonTable:
    """Compare the usual schedules, and any of your own, by their expected loss on the noisy quadratic.

    Args:
        source: Spectrum, with the noise and the start of the run.
        total_steps: Number of steps T of every schedule.
        momentum: Momentum of SGD.
        nesterov: Whether it is Nesterov momentum; otherwise heavy ball.
        lr: Peak rate of all schedules. With None, each schedule runs at its own best peak rate.
        max_lr: Largest rate allowed. With None, it is the largest stable one, or ``lr`` if that is higher.
        best: Whether to search for the numerically best schedule as well.
        own: Further schedules of T steps, by name. Their rates stay unchanged if you pass ``lr``; otherwise they are
            tuned like the others.
    """
    problem = quadratic_of(source, momentum, nesterov)
    limit = problem.stable_rate if max_lr is None else max_lr
    peak = limit if lr is None else _check.positive("compare", "lr", lr)
    usual = usual_schedules(COMPARED, total_steps, peak, spectrum=source.spectrum)
    table = problem.compare({**usual, **(own or {})}, max_lr, tune_lr=lr is None)
    if best:
        optimum = problem.search_best(total_steps, table.max_lr or limit).schedule
        schedules = {row.name: row.schedule for row in table.rows}
        table = problem.compare({**schedules, OPTIMUM: optimum}, table.max_lr)
    return labelled(table)


def training_for(
    source: SpectrumSource,
    optimizer: str | None = None,
    momentum: float | None = None,
    nesterov: bool = False,
    batch_size: int | None = None,
) -> Training:
    """The settings of a run on a spectrum: by default with the optimizer of its metric and its weight decay."""
    # A decay that is part of the products is not recorded; the record only has the resolution near zero.
    unrecorded = source.decay_source == "measured" and source.metric not in ("", "AdamW")
    given: Source = "given" if optimizer else "measured" if source.metric.lower() in OPTIMIZERS else "assumed"
    sources: dict[str, Source] = {
        "optimizer": given,
        "weight_decay": "assumed" if unrecorded else source.decay_source,
    }
    return training_of(optimizer or source.optimizer, momentum, nesterov, source.weight_decay, batch_size, sources)


def choose(regrets: Mapping[str, float]) -> str:
    """The rule: the simplest schedule whose mean regret is nearly the least.

    >>> choose({"cosine_0": 0.05, "wsd_20": 0.008, "optimum": 0.0})
    'wsd_20'
    """
    least = min(regrets.values())
    return next(name for name in SIMPLEST if name in regrets and regrets[name] <= least + CLOSE)


def _plan(
    source: SpectrumSource,
    total_steps: int,
    training: Training,
    stable: RateLimit,
    lr: float | None,
    max_lr: float | None,
    warmup_steps: int,
) -> Plan:
    problem = quadratic_of(source, training.momentum, training.nesterov)
    # Adam with a constant preconditioner is heavy ball at the rate (1 - β₁)η.
    unit = 1 / (1 - training.momentum) if training.is_adam else 1.0
    limit = problem.stable_rate if max_lr is None else max_lr / unit
    candidates, optimum = _candidates(problem, source, total_steps - warmup_steps, limit)
    scenarios = [_scenario(problem.nodes, candidates, factor, limit) for factor in _factors(source)]
    name = choose({name: _mean_regret(scenarios, name) for name in candidates})
    rates = _rates(problem, candidates[name], limit, unit, stable)
    chosen = candidates[name]
    if lr is not None:
        rates, chosen = replace(rates, best=lr), rescaled(chosen, lr / unit / peak_rate(chosen))
    schedule = after_warmup(rescaled(chosen, unit), warmup_steps)
    rows = _rows(scenarios, candidates, name, unit, warmup_steps)
    gap = None if optimum.gap is None else scenarios[0].losses[name] / (optimum.lower_bound or np.inf) - 1
    given = {"peak rate": lr, "highest rate": max_lr}
    return Plan(
        verdict=_verdict(name, schedule, rates, rows, lr, source, gap, stable),
        name=name,
        label=LABELS[name],
        schedule=schedule,
        lr=rates.best,
        lr_range=(rates.low, rates.high),
        lr_limit=rates.limit,
        table=ComparisonTable(rows, name),
        inputs=_inputs(source, total_steps, training, given, warmup_steps, scenarios),
        evidence=RULE,
        gap=gap,
        warnings=_warnings(source, name),
        training=training,
        spectrum=source,
    )


def _candidates(
    problem: NoisyQuadratic, source: SpectrumSource, steps: int, limit: float
) -> tuple[dict[str, Schedule], Search]:
    """The usual schedules at their best rates, and the numerical optimum."""
    evaluator = BlockEvaluator(problem.nodes)
    usual = usual_schedules(SIMPLEST[:-1], steps, limit, spectrum=source.prepared)
    optimum = search(evaluator, source.spectrum, steps, limit, QUICK)
    tuned = {name: tune(evaluator, schedule, limit) for name, schedule in usual.items()}
    return {**tuned, OPTIMUM: optimum.schedule}, optimum


def _mean_regret(scenarios: list[Scenario], name: str) -> float:
    """The mean regret; the nominal noise counts as much as the others together."""
    first, *others = (scenario.regret(name) for scenario in scenarios)
    return 0.5 * first + 0.5 * sum(others) / len(others)


def _scenario(nodes: Nodes, candidates: Mapping[str, Schedule], factor: float, limit: float) -> Scenario:
    evaluator = BlockEvaluator(replace(nodes, noise=factor * nodes.noise))
    losses = {name: evaluator.loss(schedule) for name, schedule in candidates.items()}
    if factor == 1:  # the candidates are tuned for this noise
        return Scenario(factor, losses, min(losses.values()))
    tuned = min(_tuned_loss(evaluator, schedule, limit) for schedule in candidates.values())
    return Scenario(factor, losses, min(tuned, *losses.values()))


def _tuned_loss(evaluator: BlockEvaluator, schedule: Schedule, limit: float) -> float:
    factor = best_scale(evaluator, schedule, limit)
    return float(evaluator.scaled_losses(schedule)(np.array([factor]))[0])


def _factors(source: SpectrumSource) -> list[float]:
    """The nominal noise, and how far it may be off in both directions; only its ratio to the start matters."""
    if _is_assumed(source):
        return [1.0, ASSUMED_FACTOR, 1 / ASSUMED_FACTOR]
    off = MEASURED_FACTOR
    if source.noise_source == "measured" and source.noise is not None:
        octaves = source.noise.octaves
        off = max(1 + 2 * float(np.median(octaves.error / octaves.sigma2)), MEASURED_FACTOR)
    return [1.0, off, 1 / off]


def _is_assumed(source: SpectrumSource) -> bool:
    return "assumed" in (source.noise_source, source.start_source)


def _rates(problem: NoisyQuadratic, schedule: Schedule, limit: float, unit: float, stable: RateLimit) -> _Rates:
    """The peak rates whose loss is within 5 % of the best one."""
    evaluator, peak = BlockEvaluator(problem.nodes), peak_rate(schedule)
    scales = np.append(FRACTIONS[peak * FRACTIONS <= limit], [1.0, limit / peak])
    losses = evaluator.scaled_losses(schedule)(scales)
    good = scales[losses <= (1 + NEARLY_BEST) * losses.min()]
    low, high = float(good.min()) * peak * unit, float(good.max()) * peak * unit
    reason = f"the largest stable rate is {stable.formula} = {stable.rate:.3g}"
    if not stable.allows(peak * unit):  # only rates that the user allowed are above the stable limit
        reason += f", and you allow rates up to {limit * unit:.3g}"
    return _Rates(peak * unit, low, high, reason)


def _rows(
    scenarios: list[Scenario], candidates: Mapping[str, Schedule], chosen: str, unit: float, warmup_steps: int
) -> tuple[ComparisonRow, ...]:
    rows = []
    for name, schedule in candidates.items():
        ratios = [scenario.losses[name] / scenario.losses[chosen] - 1 for scenario in scenarios]
        shown = after_warmup(rescaled(schedule, unit), warmup_steps)
        rows.append(
            ComparisonRow(
                name, shown, excess=ratios[0], excess_low=min(ratios), excess_high=max(ratios), label=LABELS[name]
            )
        )
    return ranked(rows)


def _verdict(
    name: str,
    schedule: Schedule,
    rates: _Rates,
    rows: tuple[ComparisonRow, ...],
    lr: float | None,
    source: SpectrumSource,
    gap: float | None,
    stable: RateLimit,
) -> str:
    short = source.spectrum.kappa / schedule.total_steps
    why = f"Your run is {short:,.0f} times shorter than the condition number: " if short >= SHORT else ""
    choice = "keep the cosine" if name == "cosine_0" else f"use {'the ' if name == OPTIMUM else ''}{LABELS[name]}"
    safe = ", the safest choice while an input is assumed" if _is_assumed(source) and rows[0].name != name else ""
    first = f"{why}{choice if why else choice[0].upper() + choice[1:]}{safe}; {shape_in_words(schedule)}."
    listed = [_compared(row) for row in rows if row.name in SIMPLEST[:4] and row.name != name]
    proof = "" if gap is None else f"; no schedule can be more than {100 * gap / (1 + gap):.0f} % better"
    second = f"In expected loss, {', '.join(listed[:-1])} and {listed[-1]}{proof}."
    good = f"{rates.low:.2g} to {rates.high:.2g}"
    if lr is None:
        others = "" if f"{rates.low:.2g}" == f"{rates.high:.2g}" else f" ({good} is as good)"
        return f"{first} {second} Use a peak rate of {rates.best:.3g}{others}; {rates.limit}."
    where = "within" if rates.low <= lr <= rates.high else "above" if lr > rates.high else "below"
    third = f"Your peak rate {lr:g} is {where} the range {good} that suits this spectrum"
    return f"{first} {second} {third}: {rates.limit if stable.allows(lr) else stable.about(lr)}."


def _compared(row: ComparisonRow) -> str:
    excess, low, high = row.excess or 0.0, row.excess_low or 0.0, row.excess_high or 0.0
    if abs(excess) < 0.0005:
        return f"{row.label} is as good"
    digits = 1 if max(abs(low), abs(high)) < 0.02 else 0
    span = f" ({100 * low:+.{digits}f} to {100 * high:+.{digits}f} %)"
    return f"{row.label} is {100 * abs(excess):.1f} % {'worse' if excess > 0 else 'better'}{span}"


def _inputs(
    source: SpectrumSource,
    total_steps: int,
    training: Training,
    given: Mapping[str, float | None],
    warmup_steps: int,
    scenarios: list[Scenario],
) -> tuple[PlanInput, ...]:
    about = f"{source.name}, condition number {source.spectrum.kappa:,.0f}{source.negative_text}"
    return (
        PlanInput("steps", f"{total_steps:,}", "given"),
        PlanInput("spectrum", about, "assumed" if source.is_law else "measured"),
        _uncertain("gradient noise", source.noise_text, source.noise_source, scenarios),
        _uncertain("start", source.start_text, source.start_source, scenarios),
        *training.inputs(),
        *(PlanInput(name, f"{rate:g}", "given") for name, rate in given.items() if rate is not None),
        *((PlanInput("warmup", f"{warmup_steps:,} steps", "given"),) if warmup_steps else ()),
    )


def _uncertain(name: str, value: str, source: Source, scenarios: list[Scenario]) -> PlanInput:
    """The noise or the start; if it is assumed, with the best schedule for ten times more and less noise."""
    if source != "assumed":
        return PlanInput(name, value, source)
    winners = [LABELS[min(scenario.losses, key=scenario.losses.__getitem__)] for scenario in scenarios]
    if len(set(winners)) == 1:
        return PlanInput(name, value, source, f"{winners[0]} stays the best if it is ten times larger or smaller")
    return PlanInput(name, value, source, f"ten times larger: {winners[1]} is best; ten times smaller: {winners[2]}")


def _warnings(source: SpectrumSource, name: str) -> tuple[str, ...]:
    sentences = [
        "" if name == WSD else NOT_QUADRATIC,
        "The gradient noise is assumed. Measure it with `eigencurve estimate --noise`."
        if source.noise_source == "assumed" else "",
        "The start is assumed. Measure it from a finished run with `eigencurve estimate --start-state`."
        if source.start_source == "assumed" else "",
        settling_warning(source),
        negative_warning(source),
    ]  # fmt: skip
    return tuple(filter(None, sentences))
