"""The few steps of a long run at which a schedule is drawn, compared or evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eigencurve._arrays import IntArray

if TYPE_CHECKING:
    from eigencurve.schedules.base import Schedule

EIGHTHS = " ▁▂▃▄▅▆▇█"


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


def facts_of(schedule: Schedule) -> list[str]:
    """First and last rate, and the steps at which the rate falls to a half, a tenth and a hundredth of its peak."""
    last = schedule.total_steps - 1
    lines = [f"  steps 0 ... {last:,}   lr {schedule(0):.6g} -> {schedule(last):.6g}"]
    for divisor in (2, 10, 100):
        step = first_step_below(schedule, schedule.lr / divisor)
        when = "never" if step is None else f"step {step:,} ({step / schedule.total_steps:.1%} of training)"
        lines.append(f"  lr / {divisor:<4} reached: {when}")
    return lines


def first_step_below(schedule: Schedule, rate: float) -> int | None:
    """The first step after which the learning rate stays at or below ``rate``; None if the schedule ends above it.

    Longer runs are sampled at a million steps.
    """
    steps = np.unique(
        np.linspace(0, schedule.total_steps - 1, min(schedule.total_steps, 10**6)).round().astype(np.int64)
    )
    above = np.flatnonzero(schedule(steps) > rate * (1 + 1e-12))
    if len(above) == 0:
        return 0
    return None if above[-1] == len(steps) - 1 else int(steps[above[-1] + 1])


def text_curve(schedule: Schedule, width: int, height: int) -> str:
    """The curve in ``height`` rows of block characters, a column per ``total_steps / width`` steps, with both axes."""
    steps = np.unique(np.linspace(0, schedule.total_steps - 1, width).round().astype(np.int64))
    rates = schedule(steps)
    top = float(rates.max())
    levels = np.rint(rates / top * height * 8).astype(int)
    rows = ["".join(EIGHTHS[min(max(level - 8 * row, 0), 8)] for level in levels) for row in reversed(range(height))]
    labels = [f"{top:.3g}"] + [""] * (height - 1)
    margin = max(len(labels[0]), 1)
    lines = [f"{label:>{margin}} |{row}" for label, row in zip(labels, rows, strict=True)]
    right = f"{schedule.total_steps - 1:,}"
    axis = f"{'0':>{margin}} +" + "-" * len(steps)
    return "\n".join([*lines, axis, " " * (margin + 2) + "0" + right.rjust(max(len(steps) - 1, len(right) + 1))])
