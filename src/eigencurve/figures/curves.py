"""Training curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eigencurve.figures.canvas import PANEL, Figure
from eigencurve.figures.style import style


def curves_figure(panels: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]], xlabel: str, ylabel: str) -> Figure:
    """Draw training curves, one panel per problem. A name has the same style in every panel, and one legend has all.

    Args:
        panels: Curves (times, values) by name, by title of the panel.
        xlabel: Label of the times.
        ylabel: Label of the values.
    """
    figure = Figure(figsize=(5.5 * min(2, len(panels)), 4 * ((len(panels) + 1) // 2)), layout="constrained")
    grid = figure.subplots((len(panels) + 1) // 2, min(2, len(panels)), squeeze=False)
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    for axes, (title, curves) in zip(grid.flat, panels.items(), strict=False):
        draw_curves(axes, curves, xlabel, ylabel, names)
        axes.set_title(title)
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    handles = {line.get_label(): line for axes in figure.axes for line in axes.lines}
    lines = [handles[name] for name in names]
    figure.legend(lines, names, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    return figure


def draw_curves(
    axes: Any,
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    xlabel: str,
    ylabel: str,
    names: Sequence[str] = (),
) -> None:
    """Draw (times, values) curves by name; on a log axis if the values are positive and span a factor of ten.

    The style of a curve is that of the place of its name in ``names``, by default in ``curves``.
    """
    places = {name: i for i, name in enumerate(names or curves)}
    for name, (times, values) in curves.items():
        axes.plot(times, values, label=name, linewidth=1.2, **style(places[name]))
    every = np.concatenate([np.zeros(0), *(np.asarray(values, dtype=np.float64) for _, values in curves.values())])
    wide = len(every) > 0 and 0 < 10 * every.min() <= every.max()
    axes.set(xlabel=xlabel, ylabel=ylabel, yscale="log" if wide else "linear")
    axes.grid(alpha=0.3)


def curves_panel(curves: Mapping[str, tuple[ArrayLike, ArrayLike]], xlabel: str, ylabel: str) -> Figure:
    """Draw named (times, values) curves in one panel with a legend; see :func:`curves_figure`."""
    figure = Figure(figsize=PANEL, layout="constrained")
    axes = figure.subplots()
    draw_curves(axes, curves, xlabel, ylabel)
    axes.legend(frameon=False, fontsize="small")
    return figure
