"""From logged runs to the forecast of the usual schedules, the best schedule, and what the fit cannot tell."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve._check import ArgumentWarning, quoted, spelled
from eigencurve.forecast.advice import NextRun
from eigencurve.forecast.best import BestSchedule
from eigencurve.forecast.coverage import coverage_of
from eigencurve.forecast.fit import fit_runs
from eigencurve.forecast.forecast import Forecast, Prediction
from eigencurve.forecast.logs import load_run
from eigencurve.forecast.runs import LoggedRun
from eigencurve.planning.logs import plan_from_logs
from eigencurve.planning.result import Plan
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.comparison import ComparisonTable, percent
from eigencurve.schedules.compose import after_warmup
from eigencurve.schedules.decays import constant, cosine, linear
from eigencurve.schedules.wsd import wsd

BEST_FOUND = "best found"
BEYOND = "Schedules marked with * go beyond the logged runs. Trust their intervals less."
# Fractions of the run over which WSD decays.
TAILS = (0.1, 0.2, 0.4)
# Losses before this fraction of a run are higher than the range of a figure.
EARLY = 0.2


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
class ForecastView:
    """What a forecast shows.

    Attributes:
        runs: Logged runs.
        forecast: The fit to these runs.
        total_steps: Number of steps T of every schedule.
        peak_lr: Peak rate of the usual schedules, and the highest rate of the best one.
        warmup_steps: Length of the linear warmup of every schedule.
        table: Forecast losses, lowest first.
        best: The best schedule that the search finds, or None if it was not asked for.
        next_run: The short additional run that would help most.
    """

    runs: tuple[LoggedRun, ...]
    forecast: Forecast
    total_steps: int
    peak_lr: float
    warmup_steps: int
    table: ComparisonTable
    best: BestSchedule | None
    next_run: NextRun


@dataclass(frozen=True, eq=False)
class FittedCurve:
    """A logged curve, and the fitted one at the same steps."""

    name: str
    steps: IntArray
    losses: Array
    fitted: Array


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


def usual_runs(total_steps: int, peak_lr: float, warmup_steps: int) -> dict[str, Schedule]:
    """The schedules that people use for T steps, all with the same warmup and peak rate.

    >>> list(usual_runs(100, 1e-3, 10))[:4]
    ['constant', 'cosine to 0', 'cosine to 10 %', 'linear to 0']
    """
    steps = total_steps - warmup_steps
    tails = {f"WSD, last {100 * tail:.0f} %": max(1, round(tail * total_steps)) for tail in TAILS}
    shapes: dict[str, Schedule] = {
        "constant": constant(steps, peak_lr),
        "cosine to 0": cosine(steps, peak_lr),
        "cosine to 10 %": cosine(steps, peak_lr, 0.1 * peak_lr),
        "linear to 0": linear(steps, peak_lr),
        **{name: wsd(steps, peak_lr, min(tail, steps)) for name, tail in tails.items()},
    }
    return {name: after_warmup(shape, warmup_steps) for name, shape in shapes.items()}


def forecast_view(
    runs: Sequence[LoggedRun],
    total_steps: int | None = None,
    max_lr: float | None = None,
    best: bool = False,
    forecast: Forecast | None = None,
) -> ForecastView:
    """Fit logged runs and forecast the usual schedules.

    Args:
        runs: Logged runs of one model.
        total_steps: Number of steps T; by default that of the longest run.
        max_lr: Peak rate of the usual schedules, and the highest rate of the best one; by default the highest logged.
        best: Whether to search for the best schedule.
        forecast: The fit to ``runs``, if you have it already.
    """
    fitted = fit_runs(runs) if forecast is None else forecast
    logged = fitted.fitted.logged
    steps = logged.num_steps if total_steps is None else _check.whole("fit", "steps", total_steps, minimum=2)
    peak = logged.highest_peak if max_lr is None else logged.require_near("fit", "max_lr", max_lr)
    rise = logged.warmup_for(steps)
    found = fitted.best_schedule(steps, peak, rise) if best else None
    schedules = usual_runs(steps, peak, rise)
    if found is not None:
        schedules[BEST_FOUND] = found.schedule
    table, advice = fitted.compare(schedules), fitted.next_run(steps)
    return ForecastView(tuple(runs), fitted, steps, peak, rise, table, found, advice)


def plan_from_view(view: ForecastView, warnings: Sequence[str] = ()) -> Plan:
    """The plan from the logs of a view, for its length and, if it is not the highest logged one, its peak rate.

    Args:
        view: Forecast.
        warnings: Warnings about the logs, to come first.
    """
    lr = None if view.peak_lr == view.forecast.fitted.logged.highest_peak else view.peak_lr
    plan = plan_from_logs(view.forecast, view.total_steps, lr=lr)
    return dataclasses.replace(plan, warnings=(*warnings, *plan.warnings))


def with_schedule(view: ForecastView, name: str, schedule: Schedule) -> ForecastView:
    """Add a schedule to the table of a forecast."""
    schedules = {**{row.name: row.schedule for row in view.table.rows}, name: schedule}
    return dataclasses.replace(view, table=view.forecast.compare(schedules))


def fitted_curves(forecast: Forecast, runs: Iterable[LoggedRun]) -> list[FittedCurve]:
    """The logged curves after the warmup, and the fit to them."""
    curves = []
    for run in runs:
        after = run.steps >= max(coverage_of(run.schedule, run.peak_lr).warmup_steps, 1)
        steps = run.steps[after]
        curves.append(FittedCurve(run.name, steps, run.losses[after], forecast.predict(run.schedule, steps).loss))
    return curves


def predictions(view: ForecastView, names: Iterable[str]) -> dict[str, Prediction]:
    """The forecast curves of those schedules of the table that are named."""
    rows = {row.name: row.schedule for row in view.table.rows}
    return {name: view.forecast.predict(rows[name]) for name in names if name in rows}


def loss_range(curves: Iterable[tuple[IntArray, Array]]) -> tuple[float, float]:
    """The range of a figure's loss axis: without the high losses of the first fifth of every run."""
    late = [values[steps >= EARLY * steps[-1]] for steps, values in curves]
    low, high = min(float(part.min()) for part in late), max(float(part.max()) for part in late)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def band_range(forecasts: Mapping[str, Prediction]) -> tuple[float, float]:
    """The range of the loss axis that contains the bands; see :func:`loss_range`."""
    return loss_range([(f.steps, end) for f in forecasts.values() for end in (f.low, f.high)])


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


def run_line(run: LoggedRun) -> str:
    """What was read about a run, in one line."""
    facts = run_facts(run)
    metric = f" ({run.metric})" if run.metric else ""
    rise = f", warmup {facts['warmup_steps']:,} steps" if facts["warmup_steps"] else ", no warmup"
    return f"{run.name}: {len(run):,} losses{metric} to step {facts['last_step']:,}, peak rate {run.peak_lr:.4g}{rise}"


def best_lines(view: ForecastView) -> list[str]:
    """What is known about the best schedule, one sentence each; empty if it was not asked for."""
    best = view.best
    if best is None:
        return []
    lines = [
        f"It ends at a loss of {best.loss:.4f} ({best.low:.4f} to {best.high:.4f}) after {view.total_steps:,} steps, "
        f"{_gain(view)}.",
        f"In the fitted model, no schedule with this warmup and rates up to {view.peak_lr:.4g} ends more than "
        f"{best.gap:.4f} below it.",
    ]
    if math.isinf(view.forecast.fit_for(view.peak_lr).logged.decay):
        lines.append("No logged run decays, so its decay is an assumption. Do not use it.")
    return lines


def _gain(view: ForecastView) -> str:
    """How the best schedule compares with the best of the others."""
    other = next(row for row in view.table.rows if row.name != BEST_FOUND)
    schedules = {row.name: row.schedule for row in (view.table[BEST_FOUND], other)}
    table = view.forecast.compare(schedules, reference=BEST_FOUND)
    rival = table[other.name]
    if rival.excess is None or rival.excess_low is None or rival.excess <= 0:
        return f"no lower than {other.name}"
    within = "; the difference is within the error of the forecast" if rival.excess_low <= 0 else ""
    return f"{percent(rival.excess).removeprefix('+')} below {other.name}, the best of the other schedules{within}"


def next_run_line(advice: NextRun) -> str:
    """Which short additional run would help most, and how much."""
    return f"{advice.reason} It would narrow the intervals by about {100 * (1 - advice.narrower):.0f} %."


def doubt_lines(view: ForecastView) -> list[str]:
    """What the fit is unsure about, one sentence each."""
    starred = any(row.beyond for row in view.table.rows)
    lines = [*view.forecast.warnings, *([BEYOND] if starred else [])]
    return lines or ["Nothing beyond the intervals above."]


def forecast_fields(view: ForecastView, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Convert a forecast to plain values, ready for JSON. ``notes`` are the warnings about the logs."""
    advice, best = view.next_run, view.best
    fields: dict[str, Any] = {
        "runs": [run_facts(run) for run in view.runs],
        "warnings": list(notes),
        "total_steps": view.total_steps,
        "max_lr": view.peak_lr,
        "warmup_steps": view.warmup_steps,
        "rows": [row.to_dict() for row in view.table.rows],
        "doubts": list(view.forecast.warnings),
        "next_run": {
            "reason": advice.reason,
            "branch_step": advice.branch_step,
            "num_steps": advice.num_steps,
            "narrower": advice.narrower,
        },
    }
    if best is not None:
        own = {name: getattr(best, name) for name in ("loss", "low", "high", "lower_bound", "gap", "status")}
        fields["best"] = {**own, "beyond": list(best.beyond), "schedule": best.schedule.to_dict()}
    return fields


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
