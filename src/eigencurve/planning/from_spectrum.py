"""A plan from a measured spectrum: the schedule with the least regret on the noisy quadratic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from eigencurve.planning.answer import Plan, PlanInput, PlanRow, RateRange, tail_sentence, training_inputs
from eigencurve.planning.doubts import negative_doubt, settling_doubt
from eigencurve.planning.inputs import Inputs, quadratic_of
from eigencurve.planning.limits import RateLimit, metric_of, optimizer_of, rate_limit, require_meant, require_rates
from eigencurve.planning.subject import Subject
from eigencurve.planning.training import OPTIMIZERS, Training, training_of
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import after_warmup
from eigencurve.schedules.decays import cosine, linear
from eigencurve.schedules.eigencurve import curve_of
from eigencurve.schedules.sampling import peak_rate
from eigencurve.schedules.staircases import elastic_step
from eigencurve.schedules.wsd import wsd
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.nodes import Nodes
from eigencurve.theory.optimal import QUICK, Search, search
from eigencurve.theory.quadratic import NoisyQuadratic
from eigencurve.theory.tuning import best_scale, rescaled, tune

SEARCHED, WSD = "numerical optimum", "WSD, last 20 %"
# Schedules in the order of preference among equals: the simplest first.
SIMPLEST = ("cosine to 0", "linear to 0", WSD, "elastic step", "eigencurve", SEARCHED)
# A simpler schedule is preferred if its mean regret is at most this much larger.
CLOSE = 0.01
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


def plan_from_subject(
    subject: Subject,
    total_steps: int,
    optimizer: str | None,
    inputs: Inputs,
    momentum: float | None = None,
    nesterov: bool = False,
    lr: float | None = None,
    max_lr: float | None = None,
    warmup_steps: int = 0,
    batch_size: int | None = None,
) -> Plan:
    """The schedule whose loss is closest to the best one, on average over what the uncertain inputs may be.

    Args:
        subject: Spectrum, with what was measured on it.
        total_steps: Number of steps T, including the warmup.
        optimizer: ``"sgd"``, ``"adam"`` or ``"adamw"``. The latter two need a spectrum in their own metric. None is the
            optimizer of the spectrum's metric.
        inputs: Gradient noise and start.
        momentum: Momentum of SGD, or β₁ of Adam; None is 0 for SGD and 0.9 for Adam.
        nesterov: Whether it is Nesterov momentum.
        lr: Peak rate of the run. By default the best one of the model, at most ``max_lr``.
        max_lr: Largest rate. By default the largest stable one.
        warmup_steps: Number of warmup steps before the schedule.
        batch_size: Batch size of the run, if it is given.
    """
    training = training_for(subject, optimizer, momentum, nesterov, batch_size)
    optimizer, momentum = str(training.optimizer), training.momentum
    stable = rate_limit(subject, optimizer, momentum, nesterov)
    lr, max_lr = require_rates("plan", lr, max_lr)
    require_meant("plan", optimizer, stable, lr=lr, max_lr=max_lr)
    problem = quadratic_of(subject, inputs, momentum, nesterov)
    # Adam with a constant preconditioner is heavy ball at the rate (1 - β₁)η.
    unit = 1 / (1 - momentum) if optimizer != "sgd" else 1.0
    limit = problem.stable_rate if max_lr is None else max_lr / unit
    steps = total_steps - warmup_steps
    candidates, found = _candidates(problem, subject, steps, limit)
    scenarios = [_scenario(problem.nodes, candidates, factor, limit) for factor in _factors(inputs)]
    regrets = {name: _mean_regret(scenarios, name) for name in candidates}
    name = next(name for name in SIMPLEST if name in regrets and regrets[name] <= min(regrets.values()) + CLOSE)
    rates = _rates(problem, candidates[name], limit, unit, stable)
    chosen = candidates[name]
    if lr is not None:
        rates, chosen = replace(rates, best=lr), rescaled(chosen, lr / unit / peak_rate(chosen))
    schedule = after_warmup(rescaled(chosen, unit), warmup_steps)
    rows = _rows(scenarios, candidates, name, unit, warmup_steps)
    gap = None if found.gap is None else scenarios[0].losses[name] / (found.lower_bound or np.inf) - 1
    return Plan(
        _verdict(name, schedule, rates, rows, lr, subject, inputs, gap, stable), name, schedule, rates, rows,
        _inputs(subject, inputs, total_steps, training, lr, max_lr, warmup_steps, scenarios), gap,
        _notes(subject, inputs, name), training,
    )  # fmt: skip


def training_for(
    subject: Subject,
    optimizer: str | None = None,
    momentum: float | None = None,
    nesterov: bool = False,
    batch_size: int | None = None,
) -> Training:
    """The settings of a run on a spectrum: by default with the optimizer of its metric and its weight decay."""
    metric, origin = metric_of(subject), subject.decay_source
    # A decay that is part of the products is not recorded; the record only has the resolution near zero.
    decay_source = "assumed" if origin == "measured" and metric not in ("", "AdamW") else origin
    source = "given" if optimizer is not None else "measured" if metric.lower() in OPTIMIZERS else "assumed"
    name = optimizer_of(subject) if optimizer is None else optimizer
    sources = {"optimizer": source, "weight_decay": decay_source}
    return training_of(name, momentum, nesterov, subject.weight_decay, batch_size, sources)


def _candidates(
    problem: NoisyQuadratic, subject: Subject, steps: int, limit: float
) -> tuple[dict[str, Schedule], Search]:
    """The usual schedules at their best rates, and the numerical optimum."""
    evaluator = BlockEvaluator(problem.nodes)
    usual: dict[str, Schedule] = {
        "cosine to 0": cosine(steps, limit),
        "linear to 0": linear(steps, limit),
        WSD: wsd(steps, limit, max(steps // 5, 1)),
        "elastic step": elastic_step(steps, limit),
    }
    if subject.spectrum.kappa > 1:
        usual["eigencurve"] = curve_of(subject.prepared, steps, limit)
    found = search(evaluator, subject.spectrum, steps, limit, QUICK)
    return {**{name: tune(evaluator, f, limit) for name, f in usual.items()}, SEARCHED: found.schedule}, found


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


def _factors(inputs: Inputs) -> list[float]:
    """The nominal noise, and how far it may be off in both directions; only its ratio to the start matters."""
    if "assumed" in (inputs.noise_source, inputs.start_source):
        return [1.0, ASSUMED_FACTOR, 1 / ASSUMED_FACTOR]
    known = inputs.measured_noise
    off = 1.0 if known is None else 1 + 2 * float(np.median(known.octaves.error / known.octaves.sigma2))
    return [1.0, max(off, MEASURED_FACTOR), 1 / max(off, MEASURED_FACTOR)]


def _rates(problem: NoisyQuadratic, schedule: Schedule, limit: float, unit: float, stable: RateLimit) -> RateRange:
    """The peak rates whose loss is within 5 % of the best one."""
    evaluator, peak = BlockEvaluator(problem.nodes), peak_rate(schedule)
    scales = np.append(FRACTIONS[peak * FRACTIONS <= limit], [1.0, limit / peak])
    losses = evaluator.scaled_losses(schedule)(scales)
    good = scales[losses <= (1 + NEARLY_BEST) * losses.min()]
    low, high = float(good.min()) * peak * unit, float(good.max()) * peak * unit
    return RateRange(peak * unit, low, high, _limit_text(peak * unit, limit * unit, stable))


def _limit_text(best: float, highest: float, stable: RateLimit) -> str:
    """What limits a recommended rate, as a clause; only rates that the user allowed are above the stable limit."""
    known = f"the largest stable rate is {stable.formula} = {stable.rate:.3g}"
    return known if stable.allows(best) else f"{known}, and you allow rates up to {highest:.3g}"


def _rows(
    scenarios: list[Scenario], candidates: Mapping[str, Schedule], chosen: str, unit: float, warmup_steps: int
) -> tuple[PlanRow, ...]:
    rows = []
    for name, schedule in candidates.items():
        ratios = [scenario.losses[name] / scenario.losses[chosen] - 1 for scenario in scenarios]
        shown = after_warmup(rescaled(schedule, unit), warmup_steps)
        rows.append(PlanRow(name, shown, None, None, None, ratios[0], min(ratios), max(ratios)))
    return tuple(sorted(rows, key=lambda row: row.behind))


def _verdict(
    name: str,
    schedule: Schedule,
    rates: RateRange,
    rows: tuple[PlanRow, ...],
    lr: float | None,
    subject: Subject,
    inputs: Inputs,
    gap: float | None,
    stable: RateLimit,
) -> str:
    short = subject.spectrum.kappa / schedule.total_steps
    why = f"Your run is {short:,.0f} times shorter than the condition number: " if short >= SHORT else ""
    choice = "keep the cosine" if name == "cosine to 0" else f"use {'the ' if name == SEARCHED else ''}{name}"
    assumed = "assumed" in (inputs.noise_source, inputs.start_source)
    safe = ", the safest choice while an input is assumed" if assumed and rows[0].name != name else ""
    first = f"{why}{choice if why else choice[0].upper() + choice[1:]}{safe}; {tail_sentence(schedule)}."
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


def _compared(row: PlanRow) -> str:
    if abs(row.behind) < 0.0005:
        return f"{row.name} is as good"
    digits = 1 if max(abs(row.behind_low), abs(row.behind_high)) < 0.02 else 0
    span = f" ({100 * row.behind_low:+.{digits}f} to {100 * row.behind_high:+.{digits}f} %)"
    return f"{row.name} is {100 * abs(row.behind):.1f} % {'worse' if row.behind > 0 else 'better'}{span}"


def _inputs(
    subject: Subject,
    inputs: Inputs,
    total_steps: int,
    training: Training,
    lr: float | None,
    max_lr: float | None,
    warmup_steps: int,
    scenarios: list[Scenario],
) -> tuple[PlanInput, ...]:
    off = _effect(scenarios) if "assumed" in (inputs.noise_source, inputs.start_source) else ""
    noise = off if inputs.noise_source == "assumed" else ""
    start = off if inputs.start_source == "assumed" else ""
    source = "assumed" if isinstance(subject.raw, PowerLaw) else "measured"
    given = {"peak rate": lr, "highest rate": max_lr}
    return (
        PlanInput("steps", f"{total_steps:,}", "given"),
        PlanInput("spectrum", _about(subject), source),
        PlanInput("gradient noise", _value(inputs.noise_text), inputs.noise_source, noise),
        PlanInput("start", _value(inputs.start_text), inputs.start_source, start),
        *training_inputs(training),
        *(PlanInput(name, f"{rate:g}", "given") for name, rate in given.items() if rate is not None),
        *((PlanInput("warmup", f"{warmup_steps:,} steps", "given"),) if warmup_steps else ()),
    )


def _about(subject: Subject) -> str:
    return f"{subject.name}, condition number {subject.spectrum.kappa:,.0f}{subject.negative_text}"


def _value(text: str) -> str:
    """The value in a line about an input, without its source and the remedy."""
    return text.split("; ")[0].split(", ", 1)[1]


def _effect(scenarios: list[Scenario]) -> str:
    """What happens to the ranking if the noise is off by a factor of ten."""
    winners = [min(scenario.losses, key=scenario.losses.__getitem__) for scenario in scenarios]
    if len(set(winners)) == 1:
        return f"{winners[0]} stays the best if it is ten times larger or smaller"
    return f"ten times larger: {winners[1]} is best; ten times smaller: {winners[2]}"


def _notes(subject: Subject, inputs: Inputs, name: str) -> tuple[str, ...]:
    notes = [] if name == WSD else [NOT_QUADRATIC]
    if inputs.noise_source == "assumed":
        notes.append("The gradient noise is assumed. Measure it with `eigencurve estimate --noise`.")
    if inputs.start_source == "assumed":
        notes.append("The start is assumed. Measure it from a finished run with `eigencurve estimate --start-state`.")
    found = (settling_doubt(subject), negative_doubt(subject))
    return (*notes, *(doubt for doubt in found if doubt))
