"""The best schedule by a fitted forecast, compared with cosine decay, WSD and the logged runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eigencurve import Schedule, linear, warmup, wsd
from eigencurve.forecast import BestSchedule, Forecast
from paper.forecasts.splits import Split

# The part of the steps over which WSD decays.
DECAY = 0.2
LINEAR, WSD = "linear to 0", "WSD, last 20 % linear to 0"


@dataclass(frozen=True, eq=False)
class Rival:
    """Another schedule, compared with the best one."""

    name: str  # its name
    loss: float  # forecast loss at its end
    measured: float | None  # last logged loss, if a run used this schedule
    gain: float  # how much lower the forecast loss of the best schedule is
    gain_low: float  # lower end of the 80 % interval of `gain`
    gain_high: float  # upper end of that interval


@dataclass(frozen=True, eq=False)
class Improvement:
    """The best schedule for the horizon and the peak rate of the fitted runs."""

    split: Split  # the split whose fitted runs it comes from
    best: BestSchedule  # the best schedule
    cosine: Rival  # the fitted run with cosine decay
    logged: Rival  # the logged run with the lowest last loss, among all runs of that horizon, fitted or held out
    others: tuple[Rival, ...]  # schedules that no run used: linear decay to 0, and WSD
    shapes: dict[str, Schedule]  # the schedules of a figure, by name

    @property
    def hold(self) -> float:
        """The fraction of the steps after which the best schedule falls below 99 % of its peak rate."""
        rates = self.best.schedule.values()
        return int(np.flatnonzero(rates >= 0.99 * rates.max())[-1] + 1) / len(rates)


def improve(split: Split, forecast: Forecast) -> Improvement:
    """Search for the best schedule and compare it with others of the same length, warmup and peak rate."""
    total, rise, peak = split.longest, forecast.fitted.logged.warmup_steps, forecast.fitted.logged.highest_peak
    best = forecast.best_schedule(total)
    decay = wsd(total, peak, round(DECAY * total), rise)
    straight = warmup(linear(total - rise, peak), rise)
    cosine = split.fitted["cosine"]
    as_long = [run for run in (*split.fitted.values(), *split.held.values()) if run.total_steps == total]
    lowest = min(as_long, key=lambda run: float(run.losses[-1]))

    def against(name: str, schedule: Schedule, measured: float | None = None) -> Rival:
        # One comparison each, so that the excess always refers to the best schedule.
        row = forecast.compare({"best": best.schedule, name: schedule}, reference="best")[name]
        excess = np.array([row.excess, row.excess_low, row.excess_high], dtype=np.float64)
        loss = float(np.float64(row.loss))
        return Rival(name, loss, measured, *(excess * abs(best.loss)).tolist())

    return Improvement(
        split,
        best,
        against(cosine.name, cosine.schedule, float(cosine.losses[-1])),
        against(lowest.name, lowest.schedule, float(lowest.losses[-1])),
        (against(LINEAR, straight), against(WSD, decay)),
        {"best": best.schedule, "cosine": cosine.schedule, WSD: decay},
    )
