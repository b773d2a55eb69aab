"""Schedules as text: a few facts, and the curve drawn with characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from eigencurve.schedules.base import Schedule

EIGHTHS = " ▁▂▃▄▅▆▇█"


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
