"""Schedules and spectra as matplotlib figures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from eigencurve import _check
from eigencurve.schedules.base import Schedule
from eigencurve.spectrum.groups import group
from eigencurve.spectrum.spectrum import Spectrum

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError("eigencurve.report needs matplotlib: pip install eigencurve[plot]") from error

# Okabe and Ito's colours, told apart by colour-blind readers, and dashes for those who print in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
NUM_POINTS = 2000


def schedule_figure(schedules: Schedule | Mapping[str, Schedule], title: str = "") -> Figure:
    """The curves of one or more schedules, side by side on a linear and a logarithmic axis.

    Args:
        schedules: one schedule, or several by the name to show in the legend.
        title: above the figure.

    Returns:
        A matplotlib Figure; ``figure.savefig("curve.png")`` writes it.
    """
    named = {schedules.kind: schedules} if isinstance(schedules, Schedule) else dict(schedules)
    if not named:
        _check.refuse("schedule_figure", "schedules", "at least one schedule", "none")
    figure = Figure(figsize=(11, 4), layout="constrained")
    for axes, scale in zip(figure.subplots(1, 2), ("linear", "log"), strict=True):
        for i, (name, schedule) in enumerate(named.items()):
            steps = _sampled_steps(schedule.total_steps)
            style = {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)]}
            axes.plot(steps, schedule(steps), label=name, **style)
        axes.set(xlabel="step", ylabel="learning rate", yscale=scale)
        axes.grid(alpha=0.3)
    figure.axes[0].legend(frameon=False)
    figure.suptitle(title)
    return figure


def spectrum_figure(spectrum: Spectrum, title: str = "") -> Figure:
    """A positive spectrum on logarithmic axes: its eigenvalues' weights, and the share of every octave as bars."""
    groups = group(spectrum)
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.bar(groups.lower, groups.share, width=groups.lower, align="edge", alpha=0.35, color=COLOURS[0],
             edgecolor="white", label="share per octave")  # fmt: skip
    seen = spectrum.weights > 0
    axes.plot(spectrum.eigenvalues[seen], spectrum.weights[seen], ".", markersize=2, color=COLOURS[1], label="nodes")
    axes.set(xscale="log", yscale="log", xlabel="eigenvalue", ylabel="share")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.suptitle(title)
    return figure


def curves_figure(
    panels: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]], xlabel: str, ylabel: str, scale: str = "log"
) -> Figure:
    """Training curves: one panel for each of ``panels``, in it one (times, numbers) curve a name.

    Args:
        panels: by title.
        xlabel: of the times.
        ylabel: of the numbers.
        scale: of the numbers' axis, as matplotlib calls it.
    """
    figure = Figure(figsize=(5.5 * min(2, len(panels)), 4 * ((len(panels) + 1) // 2)), layout="constrained")
    grid = figure.subplots((len(panels) + 1) // 2, min(2, len(panels)), squeeze=False)
    for axes, (title, curves) in zip(grid.flat, panels.items(), strict=False):
        for i, (name, (times, numbers)) in enumerate(curves.items()):
            style = {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}
            axes.plot(times, numbers, label=name, linewidth=1.2, **style)
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel, yscale=scale)
        axes.grid(alpha=0.3)
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    return figure


def _sampled_steps(total_steps: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """At most a few thousand steps, denser toward the end, where a schedule falls fastest."""
    if total_steps <= 2 * NUM_POINTS:
        return np.arange(total_steps)
    even = np.linspace(0, total_steps - 1, NUM_POINTS)
    late = total_steps - np.geomspace(1, total_steps, NUM_POINTS)
    return np.unique(np.concatenate((even, late)).round().astype(np.int64))
