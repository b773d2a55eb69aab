"""Schedules, spectra, expected losses and training curves as matplotlib figures.

Each ``draw_`` function draws on axes that it is given, each ``_figure`` function makes a figure of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eigencurve import _check
from eigencurve.report.subject import Subject
from eigencurve.schedules.base import Schedule
from eigencurve.spectrum.groups import group
from eigencurve.spectrum.power_law import PowerLaw, fit_power_law
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.theory.comparison import Comparison, Row

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError("eigencurve.report needs matplotlib: pip install eigencurve[plot]") from error

# Okabe and Ito's colours, told apart by colour-blind readers, and dashes for those who print in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
NUM_POINTS = 2000
# Of one panel, in inches: a phone shows it with letters that can still be read.
PANEL = (5.2, 3.4)
# Below this part of the peak rate a logarithmic axis ends: the last steps of a cosine are nearly zero.
SMALLEST_SHOWN = 1e-4
# More intervals than these are a curve, not a list.
MOST_INTERVALS = 40


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
        draw_rates(axes, named, scale)
    figure.axes[0].legend(frameon=False)
    figure.suptitle(title)
    return figure


def rates_figure(schedules: Mapping[str, Schedule], scale: str, intervals: Sequence[float] = ()) -> Figure:
    """The curves of schedules in one panel; ``intervals``: where those of the first begin, marked by thin lines."""
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
    """The learning rate of every step."""
    for i, (name, schedule) in enumerate(schedules.items()):
        steps = _sampled_steps(schedule.total_steps)
        axes.plot(steps, schedule(steps), label=name, **style(i))
    axes.set(xlabel="step", ylabel="learning rate", yscale=scale)
    axes.grid(alpha=0.3)


def style(place: int) -> dict[str, Any]:
    """Colour and dashes of the ``place``-th curve: both change from one to the next, and 49 pairs are different."""
    dashes = DASHES[(place + place // len(COLOURS)) % len(DASHES)]
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": dashes}


def spectrum_figure(spectrum: Spectrum, title: str = "") -> Figure:
    """A positive spectrum on logarithmic axes: its eigenvalues' weights, and the share of every octave as bars."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    _bars(axes, spectrum, "share per octave")
    seen = spectrum.weights > 0
    axes.plot(spectrum.eigenvalues[seen], spectrum.weights[seen], ".", markersize=2, color=COLOURS[1], label="nodes")
    _log_axes(axes, "eigenvalue")
    figure.suptitle(title)
    return figure


def octave_figure(subject: Subject, title: str = "") -> Figure:
    """A spectrum by octaves, with error bars and its power law; the negative part, where there is one, beside it."""
    apart = subject.fraction_negative > 0
    figure = Figure(figsize=(11, 4.5) if apart else (7, 4.5), layout="constrained")
    panels = figure.subplots(1, 1 + apart, squeeze=False, sharey=True, width_ratios=(2, 1)[: 1 + apart])[0]
    draw_octaves(panels[0], subject)
    if apart:
        draw_negative(panels[1], subject)
    figure.suptitle(title)
    return figure


def octave_panel(subject: Subject) -> Figure:
    """The octaves alone, in one panel."""
    figure = Figure(figsize=PANEL, layout="constrained")
    draw_octaves(figure.subplots(), subject)
    return figure


def negative_panel(subject: Subject) -> Figure:
    """The negative part alone, in one panel."""
    figure = Figure(figsize=PANEL, layout="constrained")
    draw_negative(figure.subplots(), subject)
    return figure


def draw_octaves(axes: Any, subject: Subject) -> None:
    """The share of every octave of |λ| + weight decay; error bars and Lanczos nodes where they are known; the law."""
    _bars(axes, subject.prepared, "share of the octave")
    measured = subject.octaves
    if measured is not None:
        below = np.minimum(measured.error, 0.99 * measured.share)
        axes.errorbar(
            measured.lower * np.sqrt(2), measured.share, yerr=(below, measured.error), fmt="none", ecolor="#000000",
            elinewidth=1, capsize=2, label="standard error",
        )  # fmt: skip
    if subject.measurement is not None:
        nodes, weights = subject.measurement.nodes, subject.measurement.weights
        seen = weights > float(group(subject.prepared).share.min()) / 10
        axes.plot(
            np.abs(nodes[seen]) + subject.weight_decay, weights[seen], "x", markersize=3, color=COLOURS[1],
            label="Lanczos nodes",
        )  # fmt: skip
    _draw_law(axes, subject)
    _log_axes(axes, "|eigenvalue| + weight decay" if subject.weight_decay else "eigenvalue")


def draw_negative(axes: Any, subject: Subject) -> None:
    """The share of every octave that its negative eigenvalues make up."""
    shape = subject.shape
    if isinstance(shape, PowerLaw) or not (shape.eigenvalues < 0).any():
        _check.refuse("draw_negative", "subject", "with negative eigenvalues", subject.name)
    weights = np.where(shape.eigenvalues < 0, shape.weights, 0.0)
    part = Spectrum(np.abs(shape.eigenvalues) + subject.weight_decay, weights)
    share = float(weights.sum())
    _bars(axes, part, f"negative: {share:.2%} of all", share, COLOURS[3], "///")
    _log_axes(axes, "|eigenvalue| + weight decay")


def _draw_law(axes: Any, subject: Subject) -> None:
    if isinstance(subject.prepared, PowerLaw) or subject.prepared.kappa == 1:
        return
    law = fit_power_law(subject.prepared)
    groups = group(law)
    middle = groups.lower * np.sqrt(2)
    axes.plot(middle, groups.share, label=f"power law, exponent {law.alpha:.2f}", linewidth=1.4, **style(2))


def _bars(
    axes: Any,
    spectrum: Spectrum | PowerLaw,
    label: str,
    total: float = 1.0,
    colour: str = COLOURS[0],
    hatch: str | None = None,
) -> None:
    """A bar for the share of each octave, times ``total``."""
    groups = group(spectrum)
    axes.bar(
        groups.lower, total * groups.share, width=groups.lower, align="edge", alpha=0.45, color=colour,
        edgecolor="#ffffff", hatch=hatch, label=label,
    )  # fmt: skip


def _log_axes(axes: Any, xlabel: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel=xlabel, ylabel="share of the parameters")
    axes.legend(frameon=False, fontsize="small")
    axes.grid(alpha=0.3)


def losses_figure(compared: Comparison) -> Figure:
    """Expected losses as bars of bias and variance, the best on top, and the certificate as a line."""
    rows = [row for row in compared.rows if row.loss is not None]
    figure = Figure(figsize=(1.25 * PANEL[0], 1.1 + 0.3 * max(len(rows), 3)), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(rows))[::-1]
    bias, variance = (np.array([_part(row, name) for row in rows]) for name in ("bias", "variance"))
    axes.barh(places, bias, height=0.7, color=COLOURS[0], alpha=0.75, label="bias: left of the start")
    axes.barh(
        places, variance, left=bias, height=0.7, color=COLOURS[1], alpha=0.75, hatch="///", edgecolor="#ffffff",
        label="variance: from the noise",
    )  # fmt: skip
    if compared.lower_bound is not None:
        axes.axvline(compared.lower_bound, color="#000000", linestyle="--", linewidth=1.4, label="certificate")
    axes.set_yticks(places, [row.name for row in rows])
    axes.set(xlabel=f"expected loss after {compared.total_steps:,} steps, per parameter")
    axes.grid(alpha=0.3, axis="x")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    return figure


def _part(row: Row, name: str) -> float:
    return float(getattr(row, name) or 0.0)


def curves_figure(panels: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]], xlabel: str, ylabel: str) -> Figure:
    """Training curves: one panel for each of ``panels``, in it one (times, numbers) curve a name.

    Args:
        panels: by title.
        xlabel: of the times.
        ylabel: of the numbers.
    """
    figure = Figure(figsize=(5.5 * min(2, len(panels)), 4 * ((len(panels) + 1) // 2)), layout="constrained")
    grid = figure.subplots((len(panels) + 1) // 2, min(2, len(panels)), squeeze=False)
    for axes, (title, curves) in zip(grid.flat, panels.items(), strict=False):
        draw_curves(axes, curves, xlabel, ylabel)
        axes.set_title(title)
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    return figure


def draw_curves(axes: Any, curves: Mapping[str, tuple[ArrayLike, ArrayLike]], xlabel: str, ylabel: str) -> None:
    """One (times, numbers) curve a name; logarithmic where the numbers are positive and span a factor of ten."""
    for i, (name, (times, numbers)) in enumerate(curves.items()):
        axes.plot(times, numbers, label=name, linewidth=1.2, **style(i))
    every = np.concatenate([np.zeros(0), *(np.asarray(numbers, dtype=np.float64) for _, numbers in curves.values())])
    wide = len(every) > 0 and 0 < 10 * every.min() <= every.max()
    axes.set(xlabel=xlabel, ylabel=ylabel, yscale="log" if wide else "linear")
    axes.grid(alpha=0.3)


def curves_panel(curves: Mapping[str, tuple[ArrayLike, ArrayLike]], xlabel: str, ylabel: str) -> Figure:
    """The same for one panel alone, with its legend."""
    figure = Figure(figsize=PANEL, layout="constrained")
    axes = figure.subplots()
    draw_curves(axes, curves, xlabel, ylabel)
    axes.legend(frameon=False, fontsize="small")
    return figure


def _sampled_steps(total_steps: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """At most a few thousand steps, denser toward the end, where a schedule falls fastest."""
    if total_steps <= 2 * NUM_POINTS:
        return np.arange(total_steps)
    even = np.linspace(0, total_steps - 1, NUM_POINTS)
    late = total_steps - np.geomspace(1, total_steps, NUM_POINTS)
    return np.unique(np.concatenate((even, late)).round().astype(np.int64))
