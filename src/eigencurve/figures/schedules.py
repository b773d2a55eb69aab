"""Learning rates over the steps of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eigencurve import _check
from eigencurve.figures.canvas import PANEL, Figure
from eigencurve.figures.style import style
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.sampling import sampled_steps

NUM_POINTS = 2000
# A logarithmic axis ends at this fraction of the peak rate, because the last rates of a cosine are nearly zero.
SMALLEST_SHOWN = 1e-4
# Up to this many intervals are marked and listed one by one.
MOST_INTERVALS = 40


def schedule_figure(schedules: Schedule | Mapping[str, Schedule], title: str = "") -> Figure:
    """Draw one or more schedules on a linear axis and, next to it, on a logarithmic axis.

    Args:
        schedules: One schedule, or several by the name to show in the legend.
        title: Title above the figure.

    Returns:
        A matplotlib Figure. Save it with ``figure.savefig("curve.png")``.
    """
    named = {schedules.kind: schedules} if isinstance(schedules, Schedule) else dict(schedules)
    if not named:
        _check.refuse("schedule_figure", "schedules", "at least one schedule", "none")
    figure = Figure(figsize=(11, 4), layout="constrained")
    for axes, scale in zip(figure.subplots(1, 2), ("linear", "log"), strict=True):
        draw_rates(axes, named, scale)
    figure.axes[0].legend(frameon=False)
    figure.suptitle(title)
    return figure


def rates_figure(schedules: Mapping[str, Schedule], scale: str, intervals: Sequence[float] = ()) -> Figure:
    """Draw schedules in one panel, with thin vertical lines at the steps ``intervals``."""
    figure = Figure(figsize=PANEL, layout="constrained")
    axes = figure.subplots()
    draw_rates(axes, schedules, scale)
    for time in intervals:
        axes.axvline(time, color="#b0b0b0", linewidth=0.7, zorder=0)
    if scale == "log":
        highest = max(schedule.lr for schedule in schedules.values())
        axes.set_ylim(bottom=max(axes.get_ylim()[0], SMALLEST_SHOWN * highest))
    axes.legend(fontsize="small", facecolor="#ffffff", edgecolor="none", framealpha=0.85)
    return figure


def draw_rates(axes: Any, schedules: Mapping[str, Schedule], scale: str) -> None:
    """Draw the learning rate of every step."""
    for i, (name, schedule) in enumerate(schedules.items()):
        steps = sampled_steps(schedule.total_steps, NUM_POINTS)
        axes.plot(steps, schedule(steps), label=name, **style(i))
    axes.set(xlabel="step", ylabel="learning rate", yscale=scale)
    axes.grid(alpha=0.3)
