"""Training curves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from eigencurve.figures.canvas import PANEL, Figure
from eigencurve.figures.style import style


def curves_panel(curves: Mapping[str, tuple[ArrayLike, ArrayLike]], xlabel: str, ylabel: str) -> Figure:
    """Draw (times, values) curves by name; on a log axis if the values are positive and span a factor of ten."""
    figure = Figure(figsize=PANEL, layout="constrained")
    axes = figure.subplots()
    for i, (name, (times, values)) in enumerate(curves.items()):
        axes.plot(times, values, label=name, linewidth=1.2, **style(i))
    every = np.concatenate([np.zeros(0), *(np.asarray(values, dtype=np.float64) for _, values in curves.values())])
    is_wide = len(every) > 0 and 0 < 10 * every.min() <= every.max()
    axes.set(xlabel=xlabel, ylabel=ylabel, yscale="log" if is_wide else "linear")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    return figure
