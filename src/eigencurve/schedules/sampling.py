"""The few steps of a long run at which a schedule is drawn, compared or evaluated."""

from __future__ import annotations

import numpy as np

from eigencurve._arrays import IntArray
from eigencurve.schedules.base import Schedule


def sampled_steps(total_steps: int, num_points: int) -> IntArray:
    """Up to ``2 * num_points`` steps, half evenly spaced, half geometric towards the end, where schedules fall fastest.

    If the run is not longer than that, these are all its steps.

    >>> sampled_steps(1000, 5).tolist()
    [0, 250, 500, 749, 822, 968, 994, 999]
    """
    if total_steps <= 2 * num_points:
        return np.arange(total_steps)
    even = np.linspace(0, total_steps - 1, num_points)
    late = total_steps - np.geomspace(1, total_steps, num_points)
    return np.unique(np.concatenate((even, late)).round().astype(np.int64))


def turning_points(schedule: Schedule) -> IntArray:
    """Steps between which the rate is monotone, in any order; empty if the schedule only decays."""
    return schedule._turns()


def peak_rate(schedule: Schedule) -> float:
    """The largest rate of all steps, evaluated only at the ends of the monotone parts.

    >>> from eigencurve import one_cycle
    >>> peak_rate(one_cycle(1_000_000, lr=0.1))
    0.1
    """
    turns = turning_points(schedule)
    steps = np.concatenate(([0], turns - 1, turns))
    return float(schedule(np.clip(steps, 0, schedule.total_steps - 1)).max())
