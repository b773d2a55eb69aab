"""The figures of the study: curves of each problem, and where predictions stop working."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from eigencurve.figures.style import COLOURS
from paper.arrays import Array, IntArray
from paper.figures import MARKERS
from paper.prediction.findings import Finding, progress_ratios, typical_factor
from paper.prediction.study import END, START, NoiseEffect, ProblemFindings, knows_minimum, ratios

LIMITS = "prediction_limits.png"
# The band around a measured mean, in standard errors.
BAND = 2.0


@dataclass(frozen=True, eq=False)
class PredictedCurve:
    """A loss along the run, measured and predicted."""

    name: str  # name in the legend
    steps: IntArray  # numbers of steps
    measured: Array  # mean of the runs
    error: Array  # its standard error
    predicted: Array  # prediction
    exact: Array | None = None  # exact expectation, if known


def figures(found: Sequence[ProblemFindings], effects: Sequence[NoiseEffect]) -> dict[str, Figure]:
    """All figures, by file name."""
    every = {file_name(one): problem_figure(one, effects if one.problem.ridge else ()) for one in found}
    return {LIMITS: limits(found), **every}


def file_name(found: ProblemFindings) -> str:
    """Name of the file of a problem's figure."""
    return f"prediction_{found.problem.name}.png"


def problem_figure(found: ProblemFindings, effects: Sequence[NoiseEffect] = ()) -> Figure:
    """The curves of the five schedules at the shown rate from the usual start, and the final losses of all pairs."""
    finding, has_minimum = found.findings[0], found.problem.is_minimum
    panels = {
        f"{model}, rate {found.plan.shown_rate:g}": _curves(found, finding, model, effects)
        for model in ((END,) if has_minimum else (END, START))
    }
    drawn = [model for model in finding.predicted if knows_minimum(found, model) or not has_minimum]
    measured = _final(found, finding.measured)
    finals = {model: (_final(found, finding.predicted[model]), measured) for model in drawn}
    what = ("excess loss", "final excess loss") if has_minimum else ("loss", "decrease of the loss")
    return prediction_figure(panels, finals, *what, log=has_minimum)


def limits(found: Sequence[ProblemFindings]) -> Figure:
    """How far predictions are off: from several distances to the minimum, and from several points of an earlier run."""
    factors = {
        one.problem.title: (
            np.array([finding.excess for finding in one.findings]),
            np.array([typical_factor(ratios(one, finding, END)) for finding in one.findings]),
        )
        for one in found
        if one.problem.is_minimum
    }
    progress = {model: _progress(one, model) for one in found if not one.problem.is_minimum for model in (END, START)}
    return limits_figure(factors, progress)


def _curves(
    found: ProblemFindings, finding: Finding, model: str, effects: Sequence[NoiseEffect]
) -> list[PredictedCurve]:
    base = 0.0 if found.problem.is_minimum else found.problem.end_loss
    size = found.problem.batch_size
    exact = {(e.pair.kind, e.pair.rate): e.curve for e in effects if e.batch_size == size}
    return [
        PredictedCurve(
            finding.pairs[i].kind, finding.marks, base + finding.measured[i], finding.error[i],
            base + finding.predicted[model][i], exact.get((finding.pairs[i].kind, finding.pairs[i].rate)),
        )
        for i in finding.at_rate(found.plan.shown_rate)
    ]  # fmt: skip


def _progress(found: ProblemFindings, model: str) -> tuple[Array, Array, Array, Array]:
    """Loss of each start, and the least, median and greatest ratio of the progress; without starts that have none."""
    rows = []
    for finding in found.findings:
        values = progress_ratios(finding, model)
        known = values[np.isfinite(values)]
        if len(known):
            rows.append((found.problem.end_loss + finding.excess, known.min(), np.median(known), known.max()))
    loss, low, median, high = np.array(rows).reshape(-1, 4).T
    return loss, low, median, high


def _final(found: ProblemFindings, curves: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(curves[:, -1] if found.problem.is_minimum else curves[:, 0] - curves[:, -1])


def prediction_figure(
    panels: Mapping[str, Sequence[PredictedCurve]], finals: Mapping[str, tuple[Array, Array]], quantity: str,
    final_quantity: str, log: bool = True,
) -> Figure:  # fmt: skip
    """Draw curves with their predictions, one panel for each way to predict, and a scatter plot of final values."""
    count = len(panels) + 1
    figure = Figure(figsize=(4.6 * count, 4.4), layout="constrained")
    grid = figure.subplots(1, count)
    for axes, (title, curves) in zip(grid, panels.items(), strict=False):
        _draw_curves(axes, curves, log)
        axes.set(xlabel="step", ylabel=quantity, title=title)
    _draw_finals(grid[-1], finals, final_quantity)
    handles, names = grid[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    return figure


def limits_figure(
    factors: Mapping[str, tuple[Array, Array]], progress: Mapping[str, tuple[Array, Array, Array, Array]]
) -> Figure:
    """Draw how far predictions are off against the distance from the minimum; a panel without data is left out."""
    drawings = [partial(_draw_factors, factors=factors)] if factors else []
    drawings += [partial(_draw_progress, progress=progress)] if progress else []
    figure = Figure(figsize=(5.3 * len(drawings), 4.4), layout="constrained")
    for axes, draw in zip(figure.subplots(1, len(drawings), squeeze=False)[0], drawings, strict=True):
        draw(axes)
        axes.axhline(1.0, color="#808080", linewidth=0.8)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False, fontsize="small")
    return figure


def _draw_factors(axes: Any, factors: Mapping[str, tuple[Array, Array]]) -> None:
    for i, (name, (excess, factor)) in enumerate(factors.items()):
        axes.plot(excess, factor, marker=MARKERS[i], color=COLOURS[i], label=name)
    axes.set(xscale="log", yscale="log", xlabel="excess loss of the start", ylabel="typical factor, final excess loss")
    axes.yaxis.set_minor_formatter("{x:g}")


def _draw_progress(axes: Any, progress: Mapping[str, tuple[Array, Array, Array, Array]]) -> None:
    for i, (name, (loss, low, median, high)) in enumerate(progress.items()):
        bars = (median - low, high - median)
        axes.errorbar(loss, median, yerr=bars, marker=MARKERS[i], color=COLOURS[i + 3], capsize=3, label=name)
    axes.set(yscale="log", xlabel="loss of the start", ylabel="predicted / measured progress")


def _draw_curves(axes: Any, curves: Sequence[PredictedCurve], log: bool) -> None:
    for i, curve in enumerate(curves):
        seen, colour = curve.steps >= 1, COLOURS[i]
        steps, mean, band = curve.steps[seen], curve.measured[seen], BAND * curve.error[seen]
        lower = np.maximum(mean - band, 0.1 * mean) if log else mean - band
        axes.fill_between(steps, lower, mean + band, color=colour, alpha=0.25, linewidth=0)
        axes.plot(steps, mean, color=colour, linewidth=1.6, label=f"{curve.name}, runs")
        axes.plot(steps, curve.predicted[seen], color=colour, linestyle="--", linewidth=1.3)
        if curve.exact is not None:
            axes.plot(steps, curve.exact[seen], color=colour, linestyle=":", linewidth=1.6)
    axes.plot([], [], color="#000000", linestyle="--", linewidth=1.3, label="predicted")
    if any(curve.exact is not None for curve in curves):
        axes.plot([], [], color="#000000", linestyle=":", linewidth=1.6, label="exact expectation")
    axes.set(xscale="log", yscale="log" if log else "linear")
    axes.grid(alpha=0.3)


def _draw_finals(axes: Any, finals: Mapping[str, tuple[Array, Array]], quantity: str) -> None:
    every = [np.zeros(0)]
    for i, (name, (predicted, measured)) in enumerate(finals.items()):
        usable = np.isfinite(predicted) & np.isfinite(measured) & (predicted > 0) & (measured > 0)
        axes.plot(
            measured[usable], predicted[usable], MARKERS[i], color=COLOURS[i + 3], markersize=5, alpha=0.8, label=name
        )
        every += [measured[usable], predicted[usable]]
    shown = np.concatenate(every)
    if len(shown):
        ends = np.array([0.7 * shown.min(), 1.4 * shown.max()])
        axes.plot(ends, ends, color="#808080", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel=f"{quantity}, runs", ylabel=f"{quantity}, predicted")
    axes.set_title("every schedule at every rate")
    axes.grid(alpha=0.3)
    if finals:
        axes.legend(frameon=False, fontsize="small")
