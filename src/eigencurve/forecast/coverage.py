"""LoggedRange: the rates, lengths and decays of logged runs, and where a schedule goes beyond them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array
from eigencurve.forecast.runs import LoggedRun
from eigencurve.schedules.base import Schedule

# A schedule decays if its rate falls from the first to the second fraction of its peak.
DECAY = (0.9, 0.5)
# Differences up to these factors are within what was logged: of rates and lengths, and of the speed of a decay.
SAME, AS_FAST = 1.05, 1.5
# Two decays are different if their speeds differ by this factor.
CONTRAST = 2.0
# A forecast is refused for a peak rate this many times above the highest logged one, or below the lowest.
FAR_ABOVE, FAR_BELOW = 10.0, 100.0


@dataclass(frozen=True)
class LoggedRange:
    """The rates, lengths and decays of logged runs, or of one schedule.

    Attributes:
        lowest_peak: Lowest peak rate.
        highest_peak: Highest peak rate.
        num_steps: Number of steps of the longest run.
        travel: Largest sum of the rates over the reference rate.
        decay: Travel of the fastest decay, from 90 % to 50 % of the peak rate; infinite if no run decays.
        lowest_rate: Lowest rate after the peak, as a fraction of the peak.
        warmup_steps: Number of steps before the peak rate of the longest run.
        slowest_decay: Travel of the slowest decay; infinite if a run does not decay.
    """

    lowest_peak: float
    highest_peak: float
    num_steps: int
    travel: float
    decay: float
    lowest_rate: float
    warmup_steps: int
    slowest_decay: float = math.inf

    @property
    def has_contrast(self) -> bool:
        """Whether all runs have one peak rate, one of them decays, and another decays more slowly or not at all."""
        decays_differ = math.isfinite(self.decay) and self.slowest_decay >= CONTRAST * self.decay
        return decays_differ and self.highest_peak <= SAME * self.lowest_peak

    @property
    def peaks(self) -> str:
        """The lowest and the highest peak rate as text, or the only one."""
        return " to ".join(f"{peak:.3g}" for peak in sorted({self.lowest_peak, self.highest_peak}))

    def has_peak(self, peak: float) -> bool:
        """Whether a peak rate is among the logged ones, or between them."""
        return self.lowest_peak / SAME <= peak <= SAME * self.highest_peak

    def require_near(self, function: str, argument: str, value: Any) -> float:
        """``value`` as a peak rate, if it is close enough to the logged ones for a forecast."""
        peak = _check.positive(function, argument, value)
        low, high = self.lowest_peak / FAR_BELOW, self.highest_peak * FAR_ABOVE
        if not low <= peak <= high:
            limits = f"from {low:.3g} to {high:.3g}, because the logged peak rate is {self.peaks}"
            _check.refuse(function, argument, limits, peak, "Log a run near that rate first.")
        return peak

    def beyond(self, schedule: LoggedRange) -> tuple[str, ...]:
        """Where a schedule goes beyond the logged runs: one sentence each."""
        sentences = []
        if not self.has_peak(schedule.highest_peak):
            sentences.append(f"its peak rate {schedule.highest_peak:.3g} is outside the logged {self.peaks}")
        if schedule.num_steps > SAME * self.num_steps:
            ratio = schedule.num_steps / self.num_steps
            sentences.append(f"its {schedule.num_steps:,} steps are {ratio:.1f} times those of the longest logged run")
        if math.isfinite(schedule.decay) and schedule.decay < self.decay / AS_FAST:
            no_decay = math.isinf(self.decay)
            sentences.append("no logged run decays" if no_decay else "it decays faster than any logged run")
        if schedule.decay > AS_FAST * self.slowest_decay:
            sentences.append("it decays more slowly than any logged run")
        return tuple(sentences)

    def warmup_for(self, total_steps: int) -> int:
        """The warmup of a run of T steps: that of the longest run, in proportion if T is smaller than its length."""
        return min(self.warmup_steps, self.warmup_steps * total_steps // self.num_steps)

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dict of plain values, with None for an infinite decay."""
        return {name: None if math.isinf(value) else value for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, entry: dict[str, Any]) -> LoggedRange:
        """The inverse of :meth:`to_dict`."""
        infinite = {name: math.inf for name in ("decay", "slowest_decay") if entry.get(name) is None}
        return cls(**{**entry, **infinite})


def logged_range(runs: Sequence[LoggedRun], reference: float) -> LoggedRange:
    """The range that ``runs`` cover together, up to the last loss of each."""
    parts = [_coverage(run.rates[: run.steps[-1]], reference) for run in runs]
    longest = max(parts, key=lambda part: part.num_steps)
    return LoggedRange(
        lowest_peak=min(part.highest_peak for part in parts),
        highest_peak=max(part.highest_peak for part in parts),
        num_steps=longest.num_steps,
        travel=max(part.travel for part in parts),
        decay=min(part.decay for part in parts),
        lowest_rate=min(part.lowest_rate for part in parts),
        warmup_steps=longest.warmup_steps,
        slowest_decay=max(part.decay for part in parts),
    )


def coverage_of(schedule: Schedule, reference: float) -> LoggedRange:
    """The range that a single schedule covers."""
    return _coverage(schedule.values(), reference)


def by_peak(runs: Sequence[LoggedRun]) -> list[list[LoggedRun]]:
    """The runs in groups of the same peak rate, the lowest first."""
    groups: list[list[LoggedRun]] = []
    for run in sorted(runs, key=lambda run: run.peak_lr):
        if groups and run.peak_lr <= SAME * groups[-1][0].peak_lr:
            groups[-1].append(run)
        else:
            groups.append([run])
    return groups


def _coverage(rates: Array, reference: float) -> LoggedRange:
    top = int(np.argmax(rates))
    peak, after = float(rates[top]), rates[top:] / rates[top]
    low = np.flatnonzero(after <= DECAY[1])
    decay = math.inf
    if len(low):
        begin = int(np.flatnonzero(after[: low[0]] >= DECAY[0])[-1])
        decay = float(after[begin : low[0]].sum()) * peak / reference
    total = float(rates.sum()) / reference
    return LoggedRange(peak, peak, len(rates), total, decay, float(after.min()), top, decay)
