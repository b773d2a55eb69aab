"""plan_from_logs: a plan from logged runs, by the forecast of the noisy quadratic that is fitted to them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from eigencurve import _check
from eigencurve.forecast.best import BestSchedule
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
