"""Forecast: the loss of any schedule, with its interval, from measures that were fitted to logged runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eigencurve import _check
from eigencurve._arrays import Array, IntArray, frozen
from eigencurve._moved import renamed, renamed_attribute
from eigencurve.forecast.advice import NextRun, fit_warnings, next_run
from eigencurve.forecast.best import BestSchedule, search_schedule
from eigencurve.forecast.fitted import FittedRuns, ScheduleForecast
from eigencurve.schedules.base import Schedule, require_schedule
from eigencurve.schedules.comparison import ComparisonRow, ComparisonTable

# Half the width of the interval that contains 80 % of a normal distribution, in standard deviations.
WIDTH = 1.2816


@dataclass(frozen=True, eq=False)
class Prediction:
    """The forecast loss of a schedule.

    Attributes:
        steps: Numbers of steps.
        loss: Expected loss after each of these.
        low: Lower end of the 80 % interval.
        high: Upper end of the 80 % interval.
        beyond: Where the schedule goes beyond the logged runs, one sentence each. Trust such forecasts less, even
            though their intervals are wider.
    """

    steps: IntArray
    loss: Array
    low: Array
    high: Array
    beyond: tuple[str, ...]

    @property
    def last(self) -> tuple[float, float, float]:
        """Loss, low and high after the last step."""
        return float(self.loss[-1]), float(self.low[-1]), float(self.high[-1])

    def __repr__(self) -> str:
        note = "".join(f"; {sentence}" for sentence in self.beyond)
        loss, low, high = self.last
        return f"Prediction({loss:.4f} in [{low:.4f}, {high:.4f}] at step {self.steps[-1]:,}{note})"


class RunEnd(NamedTuple):
    """Where a logged run ended: its peak rate, its number of steps, and the mean of its last losses."""

    peak_lr: float
    num_steps: int
    loss: float


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """The noisy quadratic fitted to logged runs; made by :func:`~eigencurve.forecast.fit_runs`.

    Attributes:
        fitted: The fit to all runs.
        names: Names of the runs.
        at_one_peak: Fits to the runs at one peak rate each, if the runs have several rates and enough runs at them.
        metric: Name of the fitted loss, such as ``"val_loss"``; empty if unknown.
        ends: Where each run ended; empty for a forecast that was saved before they were kept.
    """

    fitted: FittedRuns
    names: tuple[str, ...]
    at_one_peak: tuple[FittedRuns, ...] = ()
    metric: str = ""
    ends: tuple[RunEnd, ...] = ()

    def fit_for(self, peak: float) -> FittedRuns:
        """The fit that forecasts schedules with this peak rate: to the runs at the same rate alone, or to all runs."""
        return next((fit for fit in self.at_one_peak if fit.logged.has_peak(peak)), self.fitted)

    def predict(self, schedule: Schedule, at: ArrayLike | None = None) -> Prediction:
        """Forecast the loss along a schedule.

        Args:
            schedule: Any schedule, including its warmup.
            at: Numbers of steps, increasing and at most T. By default up to 100 from the end of the warmup to T.

        Raises:
            ValueError: ``at`` is not increasing, or the rates are too high for the fitted curvature.
        """
        require_schedule("predict", schedule)
        marks = _marks(at, schedule.total_steps, self.fitted.logged.warmup_steps)
        return _prediction(self._forecast(schedule, marks))

    @renamed(to="reference")
    def compare(self, schedules: Mapping[str, Schedule], reference: str | None = None) -> ComparisonTable:
        """Forecast the final losses of several schedules, best first.

        Args:
            schedules: Schedules by name.
            reference: Name of the schedule whose loss the others are relative to. By default the best one.
        """
        if not isinstance(schedules, Mapping) or not schedules:
            _check.wrong_type("compare", "schedules", "a non-empty mapping of names to schedules", schedules)
        ends = {name: self._forecast(require_schedule("compare", f)) for name, f in schedules.items()}
        order = sorted(ends, key=lambda name: float(ends[name].mean[-1]))
        base = order[0] if reference is None else _check.choice("compare", "reference", reference, order)
        return ComparisonTable(tuple(_row(name, ends[name], ends[base]) for name in order), base)

    def best_schedule(
        self, total_steps: int, max_lr: float | None = None, warmup_steps: int | None = None
    ) -> BestSchedule:
        """Search for the schedule with the lowest forecast loss after T steps.

        Args:
            total_steps: Number of steps T, including the warmup.
            max_lr: Highest rate allowed. By default the highest logged peak; above it the forecast is uncertain.
            warmup_steps: Length of the linear warmup. By default that of the longest logged run, in proportion if
                ``total_steps`` is smaller than its length.
        """
        logged = self.fitted.logged
        steps = _check.whole("best_schedule", "total_steps", total_steps, minimum=2)
        rate = logged.highest_peak if max_lr is None else logged.require_near("best_schedule", "max_lr", max_lr)
        usual = logged.warmup_for(steps)
        rise = usual if warmup_steps is None else _check.whole("best_schedule", "warmup_steps", warmup_steps, 0)
        if rise >= steps:
            _check.refuse("best_schedule", "warmup_steps", f"< total_steps = {steps}", rise)
        fit = self.fit_for(rate)
        schedule, loss, bound, status = search_schedule(fit, steps, rate, rise)
        end = _prediction(fit.forecast(schedule))
        return BestSchedule(schedule, *end.last, bound, loss, status, end.beyond)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Questions that the logged runs leave open, one sentence each; empty if they answer the usual ones."""
        return fit_warnings(self.fitted, self.at_one_peak, self.fit_for(self.fitted.logged.highest_peak))

    doubts = renamed_attribute("doubts", "warnings")

    def next_run(self, total_steps: int | None = None) -> NextRun:
        """The short additional run that would narrow the forecasts for T steps most."""
        usual = self.fit_for(self.fitted.logged.highest_peak)
        steps = usual.logged.num_steps if total_steps is None else total_steps
        return next_run(usual, _check.whole("next_run", "total_steps", steps, minimum=2))

    def to_dict(self) -> dict[str, Any]:
        """The forecast as a dict of plain values, for JSON."""
        alone = [fit.to_dict() for fit in self.at_one_peak]
        ends = [end._asdict() for end in self.ends]
        own = {"names": list(self.names), "at_one_peak": alone, "metric": self.metric, "ends": ends}
        return {**self.fitted.to_dict(), **own}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Forecast:
        """The inverse of :meth:`to_dict`."""
        alone = tuple(FittedRuns.from_dict(fit) for fit in entry.get("at_one_peak", ()))
        ends = tuple(RunEnd(**end) for end in entry.get("ends", ()))
        return cls(FittedRuns.from_dict(entry), tuple(entry["names"]), alone, entry.get("metric", ""), ends)

    def _forecast(self, schedule: Schedule, marks: IntArray | None = None) -> ScheduleForecast:
        fit = self.fit_for(float(schedule.values().max())) if self.at_one_peak else self.fitted
        return fit.forecast(schedule, marks)

    def __repr__(self) -> str:
        logged, gamma = self.fitted.logged, sum(m.weight * m.gamma for m in self.fitted.members)
        runs = f"{len(self.names)} run" + ("s" if len(self.names) != 1 else "")
        return (
            f"Forecast({runs} of up to {logged.num_steps:,} steps, peak rate {logged.highest_peak:.3g}, "
            f"gamma {gamma:.2f}, error of the model {self.fitted.misfit:.4f})"
        )


def _prediction(forecast: ScheduleForecast) -> Prediction:
    half = WIDTH * np.sqrt(forecast.variance + forecast.source.misfit**2)
    mean, beyond = forecast.mean, forecast.source.logged.beyond(forecast.coverage)
    return Prediction(forecast.steps, frozen(mean), frozen(mean - half), frozen(mean + half), beyond)


def _row(name: str, forecast: ScheduleForecast, base: ScheduleForecast) -> ComparisonRow:
    end = _prediction(forecast)
    difference, variance = forecast.minus(base)
    errors = sum(fit.misfit**2 for fit in {forecast.source, base.source})
    half = 0.0 if forecast is base else WIDTH * math.sqrt(variance + errors)
    # Losses may be negative; a schedule with a higher loss always has a positive excess.
    excess, width = np.array([difference, half]) / abs(float(base.mean[-1]))
    interval = float(excess), float(excess - width), float(excess + width)
    return ComparisonRow(name, forecast.schedule, *end.last, *interval, beyond=end.beyond)


def _marks(at: ArrayLike | None, total_steps: int, warmup_steps: int) -> IntArray:
    if at is None:
        first = min(max(warmup_steps, total_steps // 100), total_steps)
        return np.unique(np.linspace(first, total_steps, 100).round().astype(np.int64))
    marks = np.atleast_1d(np.asarray(at))
    if marks.ndim != 1 or marks.dtype.kind not in "iu" or not marks.size:
        _check.wrong_type("predict", "at", "a step or a sequence of steps", at)
    if marks[0] < 0 or marks[-1] > total_steps or (np.diff(marks) <= 0).any():
        _check.refuse("predict", "at", f"increasing from 0 to at most total_steps = {total_steps}", at)
    return marks.astype(np.int64)
