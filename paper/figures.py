"""Figures that several experiments draw: training curves, spectra, and gradient noise per octave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from eigencurve import Schedule, Spectrum
from eigencurve.figures.style import COLOURS, style
from eigencurve.hessian import NoiseEstimate
from eigencurve.spectrum import group

# Markers of curves or points that are told apart by their place.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# An octave whose error is larger than its value is not drawn: on a logarithmic axis its bar has no lower end.
LARGEST_ERROR = 1.0


def curves_figure(panels: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]], xlabel: str, ylabel: str) -> Figure:
    """Draw training curves, one panel per problem. A name has the same style in every panel, and one legend has all.

    An axis is logarithmic if its values are positive and span a factor of ten.

    Args:
        panels: Curves (times, values) by name, by title of the panel.
        xlabel: Label of the times.
        ylabel: Label of the values.
    """
    num_rows, num_columns = (len(panels) + 1) // 2, min(2, len(panels))
    figure = Figure(figsize=(5.5 * num_columns, 4 * num_rows), layout="constrained")
    grid = figure.subplots(num_rows, num_columns, squeeze=False)
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    lines: dict[str, Any] = {}
    for axes, (title, curves) in zip(grid.flat, panels.items(), strict=False):
        for name, (times, values) in curves.items():
            (lines[name],) = axes.plot(times, values, label=name, linewidth=1.2, **style(names.index(name)))
        every = np.concatenate([np.zeros(0), *(np.asarray(values, dtype=np.float64) for _, values in curves.values())])
        is_wide = len(every) > 0 and 0 < 10 * every.min() <= every.max()
        axes.set(xlabel=xlabel, ylabel=ylabel, yscale="log" if is_wide else "linear", title=title)
        axes.grid(alpha=0.3)
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    handles = [lines[name] for name in names]
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    return figure


def spectrum_figure(spectrum: Spectrum, title: str = "") -> Figure:
    """Draw the octaves of a positive spectrum as bars, and its eigenvalues as dots, on logarithmic axes."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    groups, seen = group(spectrum), spectrum.weights > 0
    axes.bar(
        groups.lower, groups.share, width=groups.lower, align="edge", alpha=0.45, color=COLOURS[0], edgecolor="#ffffff",
        label="share per octave",
    )  # fmt: skip
    axes.plot(spectrum.eigenvalues[seen], spectrum.weights[seen], ".", markersize=2, color=COLOURS[1], label="nodes")
    axes.set(xscale="log", yscale="log", xlabel="eigenvalue", ylabel="share of the parameters")
    _finish(axes)
    figure.suptitle(title)
    return figure


def noise_figure(noises: Mapping[str, NoiseEstimate], schedules: Mapping[str, Schedule], title: str = "") -> Figure:
    """Draw σ² per octave of several estimates in one panel, and schedules relative to their peak in another.

    Args:
        noises: Estimates by label.
        schedules: Schedules by label; the same label gets the same colour as in ``noises``.
        title: Title of the figure.
    """
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_noise(left, noises)
    for place, (label, schedule) in enumerate(schedules.items()):
        steps = np.unique(np.linspace(0, schedule.total_steps - 1, 400).round().astype(np.int64))
        right.plot(steps, np.asarray(schedule(steps)) / schedule(0), label=label, linewidth=1.6, **style(place))
    right.set(yscale="log", xlabel="step", ylabel="learning rate / peak", title="Eigencurve schedule")
    _finish(right)
    figure.suptitle(title)
    return figure


def _draw_noise(axes: Any, noises: Mapping[str, NoiseEstimate]) -> None:
    """Draw σ² per octave with standard errors. A horizontal line would be noise of covariance σ²H."""
    for place, (label, noise) in enumerate(noises.items()):
        octaves = noise.octaves
        seen = (octaves.sigma2 > 0) & (octaves.error < LARGEST_ERROR * octaves.sigma2)
        # Shift the estimates against each other so that their bars do not cover one another.
        shift = 2 ** (0.5 + 0.12 * (place - (len(noises) - 1) / 2))
        axes.errorbar(
            octaves.lower[seen] * shift, octaves.sigma2[seen], yerr=octaves.error[seen], label=label, markersize=4,
            marker=MARKERS[place % len(MARKERS)], linewidth=1, elinewidth=1, capsize=2,
            color=COLOURS[place % len(COLOURS)],
        )  # fmt: skip
    sizes = {noise.batch_size for noise in noises.values()}
    size = f", batches of {sizes.pop()}" if len(sizes) == 1 else ""
    axes.set(
        xscale="log", yscale="log", xlabel="|eigenvalue| + weight decay", ylabel="noise level σ²",
        title=f"Gradient noise{size}",
    )  # fmt: skip
    _finish(axes)


def _finish(axes: Any) -> None:
    axes.legend(frameon=False, fontsize="small")
    axes.grid(alpha=0.3)
