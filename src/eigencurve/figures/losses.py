"""Expected losses as a bar chart."""

from __future__ import annotations

import numpy as np

from eigencurve.figures.canvas import PANEL, Figure
from eigencurve.figures.style import COLOURS
from eigencurve.schedules.comparison import ComparisonRow, ComparisonTable


def losses_figure(compared: ComparisonTable) -> Figure:
    """Draw expected losses as bars of bias and variance, the best on top, and the lower bound as a line."""
    rows = [row for row in compared.rows if row.loss is not None]
    figure = Figure(figsize=(1.25 * PANEL[0], 1.1 + 0.3 * max(len(rows), 3)), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(rows))[::-1]
    bias, variance = (np.array([_part(row, name) for row in rows]) for name in ("bias", "variance"))
    axes.barh(places, bias, height=0.7, color=COLOURS[0], alpha=0.75, label="bias: initial error left")
    axes.barh(
        places, variance, left=bias, height=0.7, color=COLOURS[1], alpha=0.75, hatch="///", edgecolor="#ffffff",
        label="variance: gradient noise",
    )  # fmt: skip
    if compared.lower_bound is not None:
        axes.axvline(
            compared.lower_bound, color="#000000", linestyle="--", linewidth=1.4, label="lower bound (certificate)"
        )
    axes.set_yticks(places, [row.name for row in rows])
    axes.set(xlabel=f"expected loss after {compared.total_steps:,} steps, per parameter")
    axes.grid(alpha=0.3, axis="x")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    return figure


def _part(row: ComparisonRow, name: str) -> float:
    return float(getattr(row, name) or 0.0)
