"""Logged losses with the fit to them, and forecast losses with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eigencurve.figures.canvas import PANEL, Figure
from eigencurve.figures.style import COLOURS, style
from eigencurve.forecast.forecast import Prediction
from eigencurve.planning.forecasts import FittedCurve, band_range, loss_range
from eigencurve.schedules.comparison import ComparisonTable


def fit_figure(curves: Sequence[FittedCurve]) -> Figure:
    """Draw logged losses as dots, and the fitted curve of every run as a line."""
    figure = Figure(figsize=PANEL, layout="constrained")
    axes = figure.subplots()
    for i, curve in enumerate(curves):
        look = style(i)
        axes.plot(curve.steps, curve.losses, ".", color=look["color"], markersize=3, alpha=0.5)
        axes.plot(curve.steps, curve.fitted, label=curve.name, linewidth=1.4, **look)
    axes.set(xlabel="step", ylabel="loss", ylim=loss_range([(curve.steps, curve.losses) for curve in curves]))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    return figure


def forecasts_figure(predictions: Mapping[str, Prediction]) -> Figure:
    """Draw the forecast loss of every schedule along its run, with its 80 % interval as a band."""
    figure = Figure(figsize=PANEL, layout="constrained")
    axes = figure.subplots()
    for i, (name, forecast) in enumerate(predictions.items()):
        look = style(i)
        axes.fill_between(forecast.steps, forecast.low, forecast.high, color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(forecast.steps, forecast.loss, label=name, linewidth=1.4, **look)
    axes.set(xlabel="step", ylabel="forecast loss", ylim=band_range(predictions))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    return figure


def intervals_figure(table: ComparisonTable) -> Figure:
    """Draw the final loss of every schedule as a dot with its 80 % interval, the lowest on top."""
    figure = Figure(figsize=(1.25 * PANEL[0], 1.1 + 0.3 * max(len(table.rows), 3)), layout="constrained")
    axes = figure.subplots()
    places = range(len(table.rows))[::-1]
    for place, row in zip(places, table.rows, strict=True):
        ends = np.array([row.low, row.loss, row.high], dtype=np.float64)
        axes.plot(ends[[0, 2]], [place, place], color=COLOURS[0], linewidth=3, alpha=0.4)
        axes.plot(ends[1:2], [place], "o", color=COLOURS[0], markersize=5)
    axes.set_yticks(list(places), [row.name for row in table.rows])
    axes.set(xlabel="forecast loss at the end")
    axes.grid(alpha=0.3, axis="x")
    return figure
