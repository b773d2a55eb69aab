"""Predicted and measured losses of several schedules, one line each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eigencurve.figures.canvas import PANEL, Figure
from eigencurve.figures.style import COLOURS

# The bar around a measured mean, in standard errors.
BAR = 2.0


def race_figure(losses: Mapping[str, tuple[float, float, float]], quantity: str) -> Figure:
    """Draw measured losses with error bars and predicted losses, the first schedule on top.

    Args:
        losses: Mean, its standard error, and the prediction, by name of the schedule. A prediction that is not finite
            is left out.
        quantity: Label of the axis.
    """
    figure = Figure(figsize=(1.25 * PANEL[0], 1.1 + 0.3 * max(len(losses), 3)), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(losses))[::-1]
    mean, error, predicted = (np.array(column) for column in zip(*losses.values(), strict=True))
    bars = f"measured, ± {BAR:g} standard errors"
    axes.errorbar(mean, places, xerr=BAR * error, fmt="o", color=COLOURS[0], capsize=3, label=bars)
    shown = np.isfinite(predicted)
    axes.plot(predicted[shown], places[shown], "D", color=COLOURS[1], fillstyle="none", label="predicted")
    axes.set_yticks(places, list(losses))
    axes.set(xlabel=quantity)
    axes.set_xlim(left=0.0)
    axes.grid(alpha=0.3, axis="x")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize="small")
    return figure
