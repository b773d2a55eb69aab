"""Learning rates over the steps of training."""

from __future__ import annotations

from collections.abc import Mapping

from eigencurve import _check
from eigencurve.figures.canvas import Figure
from eigencurve.figures.style import style
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.sampling import sampled_steps

NUM_POINTS = 2000


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
        for i, (name, schedule) in enumerate(named.items()):
            steps = sampled_steps(schedule.total_steps, NUM_POINTS)
            axes.plot(steps, schedule(steps), label=name, **style(i))
        axes.set(xlabel="step", ylabel="learning rate", yscale=scale)
        axes.grid(alpha=0.3)
    figure.axes[0].legend(frameon=False)
    figure.suptitle(title)
    return figure
