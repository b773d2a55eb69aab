"""The figures of the forecasts: logged and forecast curves, and the shapes of the best schedules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from eigencurve.figures.style import COLOURS, style
from paper.arrays import Array
from paper.forecasts.best import Improvement
from paper.forecasts.splits import Outcome, Scored

NUM_COLUMNS = 3
# The first losses of a run are far above all others; the axes of the losses leave out this fraction of the run.
EARLY = 0.2
THOUSAND = 1000


def file_name(outcome: Outcome) -> str:
    """The file name of a split's figure."""
    words = re.findall(r"[a-z0-9.]+", outcome.split.name.lower())
    return "forecast_" + "_".join(words) + ".png"


def curves_figure(outcome: Outcome) -> Figure:
    """The logged losses of every held-out run with the forecast and its 80 % interval, and below the differences."""
    num_rows = -(-len(outcome.runs) // NUM_COLUMNS)
    page = Figure(figsize=(4.0 * NUM_COLUMNS, 3.8 * num_rows + 0.5), layout="constrained")
    grid = page.subplots(2 * num_rows, NUM_COLUMNS, squeeze=False, height_ratios=(2, 1.2) * num_rows)
    places = [(2 * row, column) for row in range(num_rows) for column in range(NUM_COLUMNS)]
    for i, (row, column) in enumerate(places):
        pair = grid[row, column], grid[row + 1, column]
        if i < len(outcome.runs):
            _draw_run(*pair, outcome.runs[i])
        else:
            for axes in pair:
                axes.remove()
    handles, names = page.axes[0].get_legend_handles_labels()
    page.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    page.suptitle(outcome.split.name)
    return page


def _draw_run(upper: Any, lower: Any, scored: Scored) -> None:
    run, forecast = scored.run, scored.prediction
    _draw_losses(upper, scored, 0.0)
    _draw_losses(lower, scored, forecast.loss)
    first = max(int(run.steps[0]), EARLY * run.total_steps)
    upper.set(title=scored.name, ylabel="loss")
    lower.set(xlabel="step (thousands)", ylabel="minus forecast", xlim=(first / THOUSAND, None))
    upper.set_xlim(lower.get_xlim())


def _draw_losses(axes: Any, scored: Scored, minus: Array | float) -> None:
    """Draw the losses less ``minus``."""
    run, forecast = scored.run, scored.prediction
    steps, losses = run.steps / THOUSAND, run.losses - minus
    low, high = forecast.low - minus, forecast.high - minus
    axes.fill_between(steps, low, high, color=COLOURS[5], alpha=0.4, label="80 % interval")
    axes.plot(steps, losses, ".", color=COLOURS[6], markersize=2.5, label="logged")
    axes.plot(steps, forecast.loss - minus, color=COLOURS[1], linewidth=1.2, label="forecast")
    late = run.steps >= EARLY * run.total_steps
    lowest, highest = min(losses[late].min(), low[late].min()), max(losses[late].max(), high[late].max())
    margin = 0.05 * (highest - lowest)
    axes.set_ylim(lowest - margin, highest + margin)
    axes.grid(alpha=0.3)


def shapes_figure(improvements: Sequence[Improvement]) -> Figure:
    """The best schedule of every model, cosine decay and WSD."""
    page = Figure(figsize=(10, 3.2 * -(-len(improvements) // 2)), layout="constrained")
    panels = list(page.subplots(-(-len(improvements) // 2), 2, squeeze=False).flat)
    for axes, one in zip(panels, improvements, strict=False):
        for place, (name, schedule) in enumerate(one.shapes.items()):
            steps = np.unique(np.linspace(0, schedule.total_steps - 1, 2000).astype(np.int64))
            axes.plot(steps / THOUSAND, schedule(steps), label=name, **style(place))
        axes.set(title=one.split.model, xlabel="step (thousands)", ylabel="learning rate")
        axes.grid(alpha=0.3)
    for axes in panels[len(improvements) :]:
        axes.remove()
    page.axes[0].legend(frameon=False, fontsize="small")
    return page
