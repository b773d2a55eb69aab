"""What the logged runs cover, and where a forecast goes beyond it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve._arrays import Array
from eigencurve.forecast.runs import LoggedRun
from eigencurve.schedules.base import Schedule

# A schedule decays if its rate falls from the first to the second fraction of its peak.
DECAY = (0.9, 0.5)
# Differences up to these factors are within what was logged: of rates and lengths, and of the speed of a decay.
SAME, AS_FAST = 1.05, 1.5


@dataclass(frozen=True)
class Logged:
    """What the fitted runs cover.

    Attributes:
        lowest_peak: Lowest peak rate.
        highest_peak: Highest peak rate.
        num_steps: Number of steps of the longest run.
        travel: Largest sum of the rates over the reference rate.
        decay: Travel of the fastest decay, from 90 % to 50 % of the peak rate; infinite if no run decays.
        lowest_rate: Lowest rate after the peak, as a fraction of the peak.
        warmup_steps: Number of steps before the peak rate of the longest run.
    """

    lowest_peak: float
    highest_peak: float
    num_steps: int
    travel: float
    decay: float
    lowest_rate: float
    warmup_steps: int

    def beyond(self, reach: Logged) -> tuple[str, ...]:
        """Where a schedule, described by ``reach``, goes beyond the logged runs: one sentence each."""
        found = []
        if reach.highest_peak > SAME * self.highest_peak or reach.highest_peak < self.lowest_peak / SAME:
            logged = " to ".join(f"{peak:.3g}" for peak in sorted({self.lowest_peak, self.highest_peak}))
            found.append(f"its peak rate {reach.highest_peak:.3g} is outside the logged {logged}")
        if reach.num_steps > SAME * self.num_steps:
            ratio = reach.num_steps / self.num_steps
            found.append(f"its {reach.num_steps:,} steps are {ratio:.1f} times those of the longest logged run")
        if math.isfinite(reach.decay) and reach.decay < self.decay / AS_FAST:
            faster = "no logged run decays" if math.isinf(self.decay) else "it decays faster than any logged run"
            found.append(faster)
        return tuple(found)

    def warmup_for(self, total_steps: int) -> int:
        """The warmup of a run of T steps: that of the longest run, in proportion if T is smaller than its length."""
        return min(self.warmup_steps, self.warmup_steps * total_steps // self.num_steps)

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dict of plain values, with None for an infinite decay."""
        return {**vars(self), "decay": None if math.isinf(self.decay) else self.decay}

    @classmethod
    def from_dict(cls, entry: dict[str, Any]) -> Logged:
        """The inverse of :meth:`to_dict`."""
        return cls(**{**entry, "decay": math.inf if entry["decay"] is None else entry["decay"]})


def logged_range(runs: Sequence[LoggedRun], reference: float) -> Logged:
    """What ``runs`` cover together, up to the last loss of each."""
    parts = [_reach(run.rates[: run.steps[-1]], reference) for run in runs]
    longest = max(parts, key=lambda part: part.num_steps)
    return Logged(
        min(part.highest_peak for part in parts),
        max(part.highest_peak for part in parts),
        longest.num_steps,
        max(part.travel for part in parts),
        min(part.decay for part in parts),
        min(part.lowest_rate for part in parts),
        longest.warmup_steps,
    )


def reach_of(schedule: Schedule, reference: float) -> Logged:
    """What a single schedule covers."""
    return _reach(schedule.values(), reference)


def _reach(rates: Array, reference: float) -> Logged:
    peak = float(rates.max())
    top = int(np.argmax(rates))
    after = rates[top:] / peak
    high = np.flatnonzero(after >= DECAY[0])
    low = np.flatnonzero(after <= DECAY[1])
    decay = math.inf
    if len(low):
        begin = int(high[high < low[0]][-1])
        decay = float(after[begin : low[0]].sum()) * peak / reference
    total = float(rates.sum()) / reference
    return Logged(peak, peak, len(rates), total, decay, float(after.min()), top)
