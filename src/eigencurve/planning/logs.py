"""plan_from_logs: a plan from logged runs, by the forecast of the noisy quadratic that is fitted to them."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from eigencurve import _check
from eigencurve._check import ArgumentWarning, quoted, spelled
from eigencurve.forecast.advice import NextRun
from eigencurve.forecast.best import BestSchedule
from eigencurve.forecast.coverage import coverage_of
from eigencurve.forecast.fit import fit_runs
from eigencurve.forecast.forecast import Forecast
from eigencurve.forecast.logs import load_run
from eigencurve.forecast.runs import LoggedRun
from eigencurve.planning.baselines import OPTIMUM, labelled, shape_in_words, usual_schedules
from eigencurve.planning.result import Evidence, Plan, PlanInput, Training, training_of
from eigencurve.planning.warnings import checked_run
from eigencurve.schedules.comparison import ComparisonRow, ComparisonTable
from eigencurve.schedules.compose import Warmup
from eigencurve.schedules.units import Steps

# Schedules that are simple to explain and to set, in the order of preference among equals.
SIMPLE = ("cosine_0", "linear_0", "wsd_20", "wsd_40", "cosine_10", "elastic_step")
# The usual schedules of a forecast.
USUAL = ("constant", "cosine_0", "cosine_10", "linear_0", "wsd_10", "wsd_20", "wsd_40")
# A simple schedule is kept if it is forecast to be within this fraction of the best one.
CLOSE = 0.001
# A further run is advised if it would shrink the intervals to less than this fraction.
WORTH_A_RUN = 0.7
FORECAST_OPTIMUM = "forecast optimum"
RULE = Evidence(
    "forecast",
    "The simplest schedule whose forecast loss is within 0.1 % of the least, by a noisy quadratic fitted to the logs.",
)

Log = LoggedRun | str | os.PathLike[str]


@dataclass(frozen=True)
class LogSettings:
    """How logs are read; see :func:`eigencurve.forecast.load_run`."""

    loss: str | None = None
    lr: str | None = None
    warmup_steps: int | None = None
    last_step: int | None = None
    resumed: bool = False


@dataclass(frozen=True)
class LoadedRuns:
    """Logged runs, and the warnings about them, one sentence each."""

    runs: tuple[LoggedRun, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class UsualForecasts:
    """The forecast of the usual schedules at one peak rate.

    Attributes:
        forecast: The fit to the logged runs.
        total_steps: Number of steps T of every schedule.
        peak_lr: Peak rate of the usual schedules, and the highest rate of the best one.
        warmup_steps: Length of the linear warmup of every schedule.
        table: Forecast losses, lowest first.
        best: The best schedule that the search finds, or None if it was not asked for.
        next_run: The short additional run that would help most.
    """

    forecast: Forecast
    total_steps: int
    peak_lr: float
    warmup_steps: int
    table: ComparisonTable
    best: BestSchedule | None
    next_run: NextRun


def plan_from_logs(
    logs: Forecast | Log | Sequence[Log],
    total_steps: Steps,
    *,
    optimizer: str | None = None,
    lr: float | None = None,
    max_lr: float | None = None,
    warmup_steps: int | None = None,
    momentum: float | None = None,
    nesterov: bool = False,
    weight_decay: float | None = None,
    batch_size: int | None = None,
) -> Plan:
    """The schedule with the lowest forecast loss, or a simple one that cannot be told from it.

    Args:
        logs: Logged runs of one network, or paths of logs, or the forecast that was fitted to them.
        total_steps: Number of steps T, including the warmup.
        optimizer: ``"sgd"``, ``"adam"`` or ``"adamw"``, for the generated code; by default the code uses yours.
        lr: Peak rate. By default the logged one with the lowest forecast loss.
        max_lr: Peak rate of all schedules, in place of ``lr``.
        warmup_steps: Length of the warmup. By default that of the logs.
        momentum: Momentum of SGD, or β₁ of Adam, for the generated code.
        nesterov: Whether it is Nesterov momentum.
        weight_decay: Weight decay, for the generated code.
        batch_size: Batch size, for the generated code.
    """
    if lr is not None and max_lr is not None:
        constraint = ("left out with logged runs if ", _check.Arg("lr"), " is given")
        _check.refuse("plan", "max_lr", constraint, max_lr)
    steps, lr, max_lr, rise = checked_run(total_steps, lr, max_lr, warmup_steps)
    training = training_of(optimizer, momentum, nesterov, weight_decay, batch_size)
    forecast = logs if isinstance(logs, Forecast) else fit_runs(_runs(logs))
    argument, peak = ("lr", lr) if max_lr is None else ("max_lr", max_lr)
    if peak is not None:
        peak = forecast.fitted.logged.require_near("plan", argument, peak)
    return _plan(forecast, steps, training, peak, rise)


def read_runs(
    paths: Sequence[Path], settings: LogSettings, names: Sequence[str] = (), name_of: Callable[[str], str] = quoted
) -> LoadedRuns:
    """Read the logs of several runs.

    Args:
        paths: Log files, or folders with one.
        settings: How to read them.
        names: Names of the runs to read from every file, if the files hold several.
        name_of: Spells an argument of ``load_run`` in a warning, for example as the option of a command.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        runs = [load_run(path, run=name, **vars(settings)) for path, name in product(paths, names or (None,))]
    messages = [warning.message for warning in caught]
    texts = [spelled(each.words, name_of) if isinstance(each, ArgumentWarning) else str(each) for each in messages]
    return LoadedRuns(_distinct(runs), tuple(texts))


def run_facts(run: LoggedRun) -> dict[str, Any]:
    """What was read about a run, as plain values."""
    return {
        "name": run.name,
        "metric": run.metric,
        "num_losses": len(run),
        "last_step": int(run.steps[-1]),
        "peak_lr": run.peak_lr,
        "warmup_steps": coverage_of(run.schedule, run.peak_lr).warmup_steps,
    }


def forecast_usual(
    forecast: Forecast, total_steps: int | None = None, max_lr: float | None = None, best: bool = False
) -> UsualForecasts:
    """Forecast the usual schedules.

    Args:
        forecast: The fit to logged runs.
        total_steps: Number of steps T; by default that of the longest run.
        max_lr: Peak rate of the usual schedules, and the highest rate of the best one; by default the highest logged.
        best: Whether to search for the best schedule.
    """
    logged = forecast.fitted.logged
    steps = logged.num_steps if total_steps is None else _check.whole("fit", "steps", total_steps, minimum=2)
    peak = logged.highest_peak if max_lr is None else logged.require_near("fit", "max_lr", max_lr)
    rise = logged.warmup_for(steps)
    optimum = forecast.best_schedule(steps, peak, rise) if best else None
    schedules = usual_schedules(USUAL, steps, peak, rise, run_steps=steps)
    if optimum is not None:
        schedules[OPTIMUM] = optimum.schedule
    table = labelled(forecast.compare(schedules), FORECAST_OPTIMUM)
    return UsualForecasts(forecast, steps, peak, rise, table, optimum, forecast.next_run(steps))


def choose(table: ComparisonTable) -> str:
    """The rule: the first of the simple schedules that is nearly as good as the best one, else the optimum.

    >>> from eigencurve import cosine, linear
    >>> rows = (ComparisonRow("linear_0", linear(9, 0.1), loss=2.0), ComparisonRow("cosine_0", cosine(9, 0.1), 2.001))
    >>> choose(ComparisonTable(rows, "linear_0"))
    'cosine_0'
    """
    losses = {row.name: row.loss for row in table.rows if row.loss is not None}
    least = min(losses.values())
    return next((name for name in SIMPLE if name in losses and losses[name] - least <= CLOSE * abs(least)), OPTIMUM)


def _runs(logs: Log | Sequence[Log]) -> list[LoggedRun]:
    every = [logs] if isinstance(logs, LoggedRun | str | os.PathLike) else logs
    return [log if isinstance(log, LoggedRun) else load_run(log) for log in every]


def _plan(forecast: Forecast, total_steps: int, training: Training, lr: float | None, warmup_steps: int | None) -> Plan:
    logged = forecast.fitted.logged
    peaks = _logged_peaks(forecast) if lr is None else [lr]
    optima = {peak: forecast.best_schedule(total_steps, peak, warmup_steps) for peak in peaks}
    peak = min(optima, key=lambda rate: optima[rate].loss)
    best = optima[peak]
    rise = best.schedule.num_steps if isinstance(best.schedule, Warmup) else 0
    usual = usual_schedules((*USUAL, "elastic_step"), total_steps, peak, rise, run_steps=total_steps)
    schedules = {**usual, OPTIMUM: best.schedule}
    name = choose(forecast.compare(schedules))
    table = labelled(forecast.compare(schedules, reference=name), FORECAST_OPTIMUM)
    limit = "the runs were logged at these rates, and others are uncertain"
    if len(peaks) > 1:
        limit = "of the logged rates it has the lowest forecast, and others are uncertain"
    inputs = (
        PlanInput("steps", f"{total_steps:,}", "given"),
        PlanInput("curvature, noise and start", _fitted_to(forecast), "fitted"),
        PlanInput("peak rate", f"{peak:g}", "measured" if lr is None else "given"),
        PlanInput("warmup", f"{rise:,} steps", "measured" if warmup_steps is None else "given"),
        *training.inputs(),
    )
    return Plan(
        verdict=_verdict(table, f"Use a peak rate of {peak:g}; {limit}.", best),
        name=name,
        label=table[name].label,
        schedule=table[name].schedule,
        lr=peak,
        lr_range=(logged.lowest_peak, logged.highest_peak),
        lr_limit=limit,
        table=table,
        inputs=inputs,
        evidence=RULE,
        gap=best.gap / best.loss,
        warnings=_warnings(forecast, table[name], total_steps),
        training=training,
    )


def _fitted_to(forecast: Forecast) -> str:
    """The number of runs and the loss that was fitted."""
    count = len(forecast.names)
    return f"{count} logged run{'s' if count != 1 else ''}" + (f" ({forecast.metric})" if forecast.metric else "")


def _logged_peaks(forecast: Forecast) -> list[float]:
    """The logged peak rates at which a forecast rests on their own runs, and the highest one."""
    return sorted({fit.logged.highest_peak for fit in (*forecast.at_one_peak, forecast.fitted)})


def _warnings(forecast: Forecast, chosen: ComparisonRow, total_steps: int) -> tuple[str, ...]:
    """Questions that the logs leave open, and the further run that would help, if one helps much."""
    extra = forecast.next_run(total_steps)
    advice = f"{extra.reason} That would shrink the intervals to about {100 * extra.narrower:.0f} %."
    extrapolated = (f"Extrapolated: {sentence}." for sentence in chosen.beyond)
    return (*forecast.warnings, *extrapolated, *((advice,) if extra.narrower < WORTH_A_RUN else ()))


def _verdict(table: ComparisonTable, rate: str, best: BestSchedule) -> str:
    chosen, cosine = table[table.reference], table["cosine_0"]
    expected = f"{chosen.loss:.3f} (80 % interval {chosen.low:.3f} to {chosen.high:.3f})"
    loss, lowest, other = (row.loss or 0.0 for row in (chosen, table.best, cosine))
    if chosen is cosine:
        first = f"Keep the cosine: its forecast loss is {expected}, and no schedule is forecast to be more than "
        first += f"{100 * (loss - lowest) / abs(loss):.1f} % better."
    else:
        name = f"{'the ' if chosen.name == OPTIMUM else ''}{chosen.label}"
        first = f"Use {name}: {shape_in_words(chosen.schedule)}. Its forecast loss is {expected}, {other - loss:.3f} "
        first += f"below a cosine to zero ({100 * (other - loss) / abs(other):.1f} %)."
    return f"{first} {rate} No schedule with this peak rate is more than {best.gap:.3f} better in the fitted model."


def _distinct(runs: Sequence[LoggedRun]) -> tuple[LoggedRun, ...]:
    """The runs with different names: a repeated one gets a number."""
    seen: Counter[str] = Counter()
    named = []
    for place, run in enumerate(runs, start=1):
        name = run.name or f"run {place}"
        seen[name] += 1
        shown = name if seen[name] == 1 else f"{name} ({seen[name]})"
        named.append(LoggedRun(run.steps, run.losses, run.schedule, shown, run.metric))
    return tuple(named)
