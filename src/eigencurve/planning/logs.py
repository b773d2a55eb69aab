"""plan_from_logs: a plan from logged runs, by the forecast of the noisy quadratic that is fitted to them."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from eigencurve import _check
from eigencurve._check import ArgumentWarning, quoted, spelled
from eigencurve.forecast.advice import NextRun
from eigencurve.forecast.best import BestSchedule
from eigencurve.forecast.coverage import SAME, coverage_of
from eigencurve.forecast.fit import fit_runs
from eigencurve.forecast.forecast import Forecast, RunEnd
from eigencurve.forecast.logs import load_run
from eigencurve.forecast.runs import LoggedRun
from eigencurve.planning.baselines import OPTIMUM, labelled, shape_in_words, usual_schedules
from eigencurve.planning.result import Evidence, Plan, PlanInput, Training, training_of
from eigencurve.planning.warnings import checked_run
from eigencurve.schedules.comparison import ComparisonRow, ComparisonTable
from eigencurve.schedules.compose import Warmup
from eigencurve.schedules.units import Steps

# The shapes among which the forecast chooses. Constant rates ended higher than forecast on some small trainings. How
# often the optimum of the fitted model does is not measured.
SHAPES = ("linear_0", "cosine_0", "elastic_step", "wsd_20", "wsd_40", "wsd_60", "wsd_80")
# The shape that is best without a forecast, and that a forecast has to beat.
DEFAULT = "linear_0"
# The usual schedules of a forecast.
USUAL = ("constant", "cosine_0", "cosine_10", "linear_0", "wsd_10", "wsd_20", "wsd_40")
# Forecasts within this fraction of the loss are equal, and the first of the shapes is preferred.
CLOSE = 0.001
# A gain counts if it is outside its 80 % interval, or above this fraction of the loss.
CLEAR = 0.005
# The best peak rate falls with the length of the run, η ∝ T^-½; chosen on four small tasks, from T/2 to T steps.
DRIFT = 0.5
# A recommended rate is at most this factor below the lowest logged one.
MOST_BELOW = 2.0
# Runs at least this fraction as long as the longest are compared with each other.
AS_LONG = 0.9
# A further run is advised if it would shrink the intervals to less than this fraction.
WORTH_A_RUN = 0.7
FORECAST_OPTIMUM = "forecast optimum"
RULE = Evidence(
    "forecast",
    "A linear decay to zero, unless the noisy quadratic fitted to the logs forecasts clearly less for another usual "
    "shape: outside the 80 % interval of the difference, or by more than 0.5 % of the loss.",
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
    """A linear decay to zero, or another usual shape if the logs make clear that it ends lower.

    Args:
        logs: Logged runs of one network, or paths of logs, or the forecast that was fitted to them.
        total_steps: Number of steps T, including the warmup.
        optimizer: ``"sgd"``, ``"adam"`` or ``"adamw"``, for the generated code; by default the code uses yours.
        lr: Peak rate. By default the logged rate of the run that ended lowest, lower for a longer run.
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
    """The rule: the default shape, unless another one is clearly lower; then the first that is nearly the lowest.

    Args:
        table: Forecasts of ``SHAPES``, relative to the lowest of them.

    >>> from eigencurve import linear, wsd
    >>> rows = [ComparisonRow("wsd_20", wsd(9, 0.1, 2), loss=2.0, excess=0.0)]
    >>> rows += [ComparisonRow("linear_0", linear(9, 0.1), 2.004, excess=0.002, excess_low=-0.001, excess_high=0.005)]
    >>> choose(ComparisonTable(tuple(rows), "wsd_20"))
    'linear_0'
    """
    default = table[DEFAULT]
    gain, surest = default.excess or 0.0, default.excess_low or 0.0
    if surest <= 0 and gain <= CLEAR:
        return DEFAULT
    return next(name for name in SHAPES if (table[name].excess or 0.0) <= CLOSE)


def choose_rate(ends: Sequence[RunEnd], total_steps: int) -> tuple[float, float]:
    r"""The rule for the peak rate: that of the logged run that ended lowest, lowered for a longer run.

    .. math:: \eta = \eta_\text{logged} \, (T_\text{logged} / T)^{1/2}

    A rate is not raised for a shorter run, and not lowered to less than half the lowest logged one.

    Args:
        ends: Where the logged runs ended. Only those about as long as the longest one count.
        total_steps: Number of steps T of the planned run.

    Returns:
        The logged rate and the recommended one.

    >>> choose_rate([RunEnd(0.1, 1000, 2.0), RunEnd(0.4, 1000, 1.9)], 4000)
    (0.4, 0.2)
    """
    longest = max(end.num_steps for end in ends)
    best = min((end for end in ends if end.num_steps >= AS_LONG * longest), key=lambda end: end.loss)
    scale = min(1.0, (best.num_steps / total_steps) ** DRIFT)
    return best.peak_lr, max(best.peak_lr * scale, min(end.peak_lr for end in ends) / MOST_BELOW)


def _runs(logs: Log | Sequence[Log]) -> list[LoggedRun]:
    every = [logs] if isinstance(logs, LoggedRun | str | os.PathLike) else logs
    return [log if isinstance(log, LoggedRun) else load_run(log) for log in every]


def _plan(forecast: Forecast, total_steps: int, training: Training, lr: float | None, warmup_steps: int | None) -> Plan:
    logged = forecast.fitted.logged
    near, peak = _peak_rate(forecast, total_steps) if lr is None else (lr, lr)
    reason = _reason(forecast, near, peak) if lr is None else "you asked for it"
    # The fit to the runs at the nearest logged rate alone; one fit to several rates is less accurate.
    forecast = replace(forecast, fitted=forecast.fit_for(near), at_one_peak=())
    best = forecast.best_schedule(total_steps, peak, warmup_steps)
    rise = best.schedule.num_steps if isinstance(best.schedule, Warmup) else 0
    shapes = usual_schedules(SHAPES, total_steps, peak, rise, run_steps=total_steps)
    name = choose(forecast.compare(shapes))
    others = usual_schedules(USUAL, total_steps, peak, rise, run_steps=total_steps)
    table = labelled(forecast.compare({**shapes, **others, OPTIMUM: best.schedule}, reference=name), FORECAST_OPTIMUM)
    chosen = table[name]
    inputs = (
        PlanInput("steps", f"{total_steps:,}", "given"),
        PlanInput("curvature, noise and start", _fitted_to(forecast), "fitted"),
        PlanInput("peak rate", f"{peak:g}", "measured" if lr is None else "given"),
        PlanInput("warmup", f"{rise:,} steps", "measured" if warmup_steps is None else "given"),
        *training.inputs(),
    )
    return Plan(
        verdict=_verdict(table, f"Use a peak rate of {peak:.3g}: {reason}.", best.lower_bound),
        name=name,
        label=chosen.label,
        schedule=chosen.schedule,
        lr=peak,
        lr_range=(logged.lowest_peak, logged.highest_peak),
        lr_limit=reason,
        table=table,
        inputs=inputs,
        evidence=RULE,
        gap=((chosen.loss or 0.0) - best.lower_bound) / abs(chosen.loss or 1.0),
        warnings=(*_warnings(forecast, chosen, total_steps), *_edge_warnings(forecast.ends, near)),
        training=training,
    )


def _fitted_to(forecast: Forecast) -> str:
    """The number of runs and the loss that was fitted."""
    count = len(forecast.names)
    return f"{count} logged run{'s' if count != 1 else ''}" + (f" ({forecast.metric})" if forecast.metric else "")


def _peak_rate(forecast: Forecast, total_steps: int) -> tuple[float, float]:
    """The best logged rate, and the recommended one; the same if the runs do not tell how rates compare."""
    logged = forecast.fitted.logged
    if not forecast.ends or logged.highest_peak <= SAME * logged.lowest_peak:
        return logged.highest_peak, logged.highest_peak
    return choose_rate(forecast.ends, total_steps)


def _reason(forecast: Forecast, near: float, peak: float) -> str:
    """What the recommended rate rests on, as a clause."""
    logged = forecast.fitted.logged
    if logged.highest_peak <= SAME * logged.lowest_peak:
        return "it is the only logged rate, so whether another is better is unknown"
    lowest = f"the run at {near:.3g} ended lowest"
    if peak == near:
        return lowest
    return f"{lowest}, and the best rate falls with the length of the run, about as 1/√T"


def _edge_warnings(ends: Sequence[RunEnd], near: float) -> tuple[str, ...]:
    """A sentence if the best of several logged rates is the lowest or the highest of them."""
    lowest, highest = (pick((end.peak_lr for end in ends), default=near) for pick in (min, max))
    if lowest < highest and near in (lowest, highest):
        edge, beyond = ("lowest", near / 2) if near == lowest else ("highest", 2 * near)
        return (f"The best logged rate is the {edge} one: log a run at {beyond:.3g} too.",)
    return ()


def _warnings(forecast: Forecast, chosen: ComparisonRow, total_steps: int) -> tuple[str, ...]:
    """Questions that the logs leave open, and the further run that would help, if one helps much."""
    extra = forecast.next_run(total_steps)
    advice = f"{extra.reason} That would shrink the intervals to about {100 * extra.narrower:.0f} %."
    extrapolated = (f"Extrapolated: {sentence}." for sentence in chosen.beyond)
    return (*forecast.warnings, *extrapolated, *((advice,) if extra.narrower < WORTH_A_RUN else ()))


def _verdict(table: ComparisonTable, rate: str, lower_bound: float) -> str:
    chosen, cosine = table[table.reference], table["cosine_0"]
    loss, other = chosen.loss or 0.0, cosine.loss or 0.0
    first = (
        f"Use {chosen.label}: {shape_in_words(chosen.schedule)}. Its forecast loss is {chosen.loss:.3f} (80 % interval "
    )
    first += f"{chosen.low:.3f} to {chosen.high:.3f})"
    if chosen is not cosine:
        side = "below" if other >= loss else "above"
        first += f", {abs(other - loss):.3f} {side} a cosine to zero ({100 * abs(other - loss) / abs(other):.1f} %)"
    unclear = " No other usual shape is forecast to end clearly lower." if chosen.name == DEFAULT else ""
    bound = f"No schedule with this peak rate is more than {loss - lower_bound:.3f} better in the fitted model."
    return f"{first}.{unclear} {rate} {bound}"


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
