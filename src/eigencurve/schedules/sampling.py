"""A few steps of a long run at which a schedule is drawn or compared."""

from __future__ import annotations

import numpy as np

from eigencurve._arrays import IntArray


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
