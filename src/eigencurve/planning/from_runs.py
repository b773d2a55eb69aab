"""A plan from logged runs: the forecast of the usual schedules and the best one."""

from __future__ import annotations

import math

from eigencurve.forecast.best import BestSchedule
from eigencurve.forecast.forecast import Forecast
from eigencurve.planning.answer import Plan, PlanInput, PlanRow, RateRange, tail_sentence, training_inputs
from eigencurve.planning.forecasts import ForecastView, usual_runs
from eigencurve.planning.training import Training
from eigencurve.schedules.comparison import ComparisonRow
from eigencurve.schedules.compose import Warmup, after_warmup
from eigencurve.schedules.staircases import elastic_step

SEARCHED = "forecast optimum"
# Schedules that are simple to explain and to set, in the order of preference among equals.
SIMPLE = (
    "cosine to 0", "linear to 0", "WSD, last 20 %", "WSD, last 40 %", "cosine to 10 %", "elastic step",
)  # fmt: skip
# A simple schedule is kept if it is forecast to be within this fraction of the best one.
CLOSE = 0.001


def plan_from_view(view: ForecastView) -> Plan:
    """The plan for the steps and the peak rate of a forecast, without a second search if it has its best schedule."""
    peak = None if view.peak_lr == view.forecast.fitted.logged.highest_peak else view.peak_lr
    return plan_from_forecast(view.forecast, view.total_steps, Training(), peak, best=view.best)


def plan_from_forecast(
    forecast: Forecast,
    total_steps: int,
    training: Training,
    max_lr: float | None = None,
    warmup_steps: int | None = None,
    best: BestSchedule | None = None,
) -> Plan:
    """The schedule with the lowest forecast loss, or a simple one that cannot be told from it.

    Args:
        forecast: The fit to logged runs.
        total_steps: Number of steps T, including the warmup.
        training: Optimizer of the run and its settings, for the code.
        max_lr: Peak rate. By default the logged one with the lowest forecast loss.
        warmup_steps: Length of the warmup. By default that of the logs.
        best: What ``forecast.best_schedule`` found for these settings, if it was searched for already.
    """
    logged = forecast.fitted.logged
    peak = logged.highest_peak if max_lr is None else max_lr
    limit = "the runs were logged at these rates, and others are uncertain"
    if best is None:
        peaks = _logged_peaks(forecast) if max_lr is None else [max_lr]
        found = {rate: forecast.best_schedule(total_steps, rate, warmup_steps) for rate in peaks}
        peak = min(found, key=lambda rate: found[rate].loss)
        best = found[peak]
        limit = "of the logged rates it has the lowest forecast, and others are uncertain" if len(peaks) > 1 else limit
    rise = best.schedule.num_steps if isinstance(best.schedule, Warmup) else 0
    step = after_warmup(elastic_step(total_steps - rise, peak), rise)
    schedules = {**usual_runs(total_steps, peak, rise), "elastic step": step, SEARCHED: best.schedule}
    top = (first := forecast.compare(schedules)).rows[0]
    name = next((name for name in SIMPLE if _as_good(first[name], top)), SEARCHED)
    table = forecast.compare(schedules, reference=name)
    chosen = table[name]
    rows = tuple(_row(row) for row in table.rows)
    rates = RateRange(peak, logged.lowest_peak, logged.highest_peak, limit)
    known = (
        PlanInput("steps", f"{total_steps:,}", "given"),
        PlanInput("curvature, noise and start", _known(forecast), "fitted"),
        PlanInput("peak rate", f"{peak:g}", "measured" if max_lr is None else "given"),
        PlanInput("warmup", f"{rise:,} steps", "measured" if warmup_steps is None else "given"),
        *training_inputs(training),
    )
    notes = (*forecast.warnings, *(f"Extrapolated: {sentence}." for sentence in chosen.beyond))
    extra = forecast.next_run(total_steps)
    advice = f"{extra.reason} That would shrink the intervals to about {extra.narrower:.0%}.".replace("%", " %")
    return Plan(
        _verdict(chosen, top, table["cosine to 0"], rates, best), name, chosen.schedule, rates, rows, known,
        best.gap / best.loss, (*notes, *((advice,) if extra.narrower < 0.7 else ())), training,
    )  # fmt: skip


def _known(forecast: Forecast) -> str:
    """The number of runs and the loss that was fitted."""
    count = len(forecast.names)
    return f"{count} logged run{'s' if count != 1 else ''}" + (f" ({forecast.metric})" if forecast.metric else "")


def _logged_peaks(forecast: Forecast) -> list[float]:
    """The logged peak rates at which a forecast rests on their own runs, and the highest one."""
    return sorted({fit.logged.highest_peak for fit in (*forecast.at_one_peak, forecast.fitted)})


def _as_good(row: ComparisonRow, best: ComparisonRow) -> bool:
    """Whether a schedule is so close to the best that the difference does not matter or cannot be told."""
    return _loss(row) - _loss(best) <= CLOSE * abs(_loss(best))


def _loss(row: ComparisonRow) -> float:
    """The forecast loss; every row of a forecast has one."""
    return math.nan if row.loss is None else row.loss


def _row(row: ComparisonRow) -> PlanRow:
    behind = (row.excess or 0.0, row.excess_low or 0.0, row.excess_high or 0.0)
    return PlanRow(row.name, row.schedule, row.loss, row.low, row.high, *behind)


def _verdict(
    chosen: ComparisonRow, top: ComparisonRow, cosine_row: ComparisonRow, rates: RateRange, best: BestSchedule
) -> str:
    loss = f"{chosen.loss:.3f} (80 % interval {chosen.low:.3f} to {chosen.high:.3f})"
    gain = _loss(cosine_row) - _loss(chosen)
    if chosen.name == "cosine to 0":
        first = f"Keep the cosine: its forecast loss is {loss}, and no schedule is forecast to be more than "
        first += f"{100 * (_loss(chosen) - _loss(top)) / abs(_loss(chosen)):.1f} % better."
    else:
        name = f"the {chosen.name}" if chosen.name == SEARCHED else chosen.name
        first = f"Use {name}: {tail_sentence(chosen.schedule)}. Its forecast loss is {loss}, {gain:.3f} below a "
        first += f"cosine to zero ({100 * gain / abs(_loss(cosine_row)):.1f} %)."
    limit = f"Use a peak rate of {rates.best:g}; {rates.limit}."
    sure = f"No schedule with this peak rate is more than {best.gap:.3f} better in the fitted model."
    return f"{first} {limit} {sure}"
