"""Interactive charts, with plotly.

Each chart is built in a single constructor call: plotly validates whatever is added later again and again, which takes
ten times as long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eigencurve._arrays import Array, IntArray
from eigencurve.figures.style import COLOURS as PALETTE
from eigencurve.forecast.coverage import coverage_of
from eigencurve.forecast.forecast import Forecast, Prediction
from eigencurve.forecast.runs import LoggedRun
from eigencurve.schedules.base import Schedule
from eigencurve.spectrum.groups import Groups
from eigencurve.theory.blocks import blocks_of

try:
    import plotly.graph_objects as go
except ImportError as error:
    raise ImportError("eigencurve.figures.interactive needs plotly: pip install eigencurve[studio]") from error

# Black would vanish on a dark page, so grey replaces it.
COLOURS = PALETTE[:-1]
DASHES = ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot")
GREY = "#808080"
HEIGHT = 380
# Margins in pixels. The bottom has room for the axis title and the legend, which has two names a line on a phone.
MARGIN = {"l": 62, "r": 8, "t": 8}
AXIS_ROOM, LINE_ROOM = 54, 20.5
# Fixed margins and plain labels: measuring text takes the browser several times as long.
PLAIN = {"automargin": False, "exponentformat": "e"}
LOG = {**PLAIN, "type": "log"}
STEPS = {"automargin": False, "exponentformat": "none", "separatethousands": True, "title": "step"}
# Number of labels on the axis of eigenvalues that fit on a phone.
NUM_LABELS = 4
# Losses before this fraction of a run are higher than the range of a figure.
EARLY = 0.2
# Steps at which every curve of rates is drawn: this many evenly spaced, and this many geometrically towards the end.
NUM_DRAWN, NUM_LATE = 121, 40


@dataclass(frozen=True, eq=False)
class FittedCurve:
    """A logged curve, and the fitted one at the same steps."""

    name: str
    steps: IntArray
    losses: Array
    fitted: Array


def octaves_chart(octaves: Groups) -> go.Figure:
    """Draw the share of the eigenvalues in each octave as bars, on logarithmic axes."""
    low, high = math.log10(octaves.lower[0]) - 0.05, math.log10(2 * octaves.lower[-1]) + 0.05
    bars = {
        "type": "bar", "x": octaves.lower, "y": octaves.share, "width": octaves.lower, "offset": 0,
        "marker": {"color": COLOURS[0], "opacity": 0.6, "line": {"width": 0.5, "color": "white"}},
        "customdata": 2 * octaves.lower, "hovertemplate": "%{x:.3g} to %{customdata:.3g}<br>share %{y:.3g}",
    }  # fmt: skip
    spacing = max(1, math.ceil((high - low) / NUM_LABELS))
    layout = {
        "xaxis": {**LOG, "title": "|λ| + weight decay", "range": [low, high], "dtick": spacing, "tickangle": 0},
        "yaxis": {**LOG, "title": "share of all", "range": [math.log10(octaves.share.min()) - 0.3, 0.3]},
    }
    return go.Figure(data=[bars], layout={**layout, **_frame(1)})


def losses_chart(marks: IntArray, losses: Mapping[str, Array], bound: Array | None) -> go.Figure:
    """Draw the expected loss of every schedule along the run, and the bound that none can beat.

    Args:
        marks: Numbers of steps.
        losses: Losses after each of these, by the name of the schedule.
        bound: Lower bound after each of these; None if there is none.
    """
    text = "step %{x:,}<br>expected loss %{y:.4g}"
    bounds = [] if bound is None else [_bound_area(marks, bound)]
    lines = [_numbered_line(i, name, marks, _above_zero(curve), text) for i, (name, curve) in enumerate(losses.items())]
    values = np.concatenate([*losses.values(), *([] if bound is None else [bound])])
    shown = values[np.isfinite(values) & (values > 0)]
    top = min(float(shown.max()), 3 * float(next(iter(losses.values()))[0]))
    reach = [math.log10(max(float(shown.min()), 1e-12 * top)) - 0.1, math.log10(top) + 0.1]
    layout = {"xaxis": STEPS, "yaxis": {**LOG, "title": "expected loss", "range": reach}}
    return go.Figure(data=[*bounds, *lines], layout={**layout, **_frame(len(bounds) + len(lines))})


def fit_chart(curves: Sequence[FittedCurve]) -> go.Figure:
    """Draw logged losses as dots, and the fitted curve of every run as a line."""
    text = "step %{x:,}<br>loss %{y:.4f}"
    dots, lines = [], []
    for place, curve in enumerate(curves):
        marker = {"color": COLOURS[place % len(COLOURS)], "size": 4, "opacity": 0.5}
        extra = f"{text}<extra>{escape(curve.name)}</extra>"
        dots.append(
            {"type": "scatter", "x": curve.steps, "y": curve.losses, "mode": "markers", "marker": marker,
             "showlegend": False, "hovertemplate": extra}
        )  # fmt: skip
        lines.append(_numbered_line(place, curve.name, curve.steps, curve.fitted, "step %{x:,}<br>fit %{y:.4f}"))
    reach = loss_range([(curve.steps, curve.losses) for curve in curves])
    layout = {"xaxis": STEPS, "yaxis": {**PLAIN, "title": "loss", "range": list(reach)}}
    return go.Figure(data=[*dots, *lines], layout={**layout, **_frame(len(lines))})


def forecasts_chart(predictions: Mapping[str, Prediction]) -> go.Figure:
    """Draw the forecast loss of every schedule along its run, with its 80 % interval as a band."""
    bands, lines = [], []
    for place, (name, forecast) in enumerate(predictions.items()):
        lines.append(_numbered_line(place, name, forecast.steps, forecast.loss, "step %{x:,}<br>loss %{y:.4f}"))
        bands.append(_band(place, forecast))
    layout = {
        "xaxis": STEPS,
        "yaxis": {**PLAIN, "title": "forecast loss", "range": list(band_range(predictions))},
    }
    return go.Figure(data=[*bands, *lines], layout={**layout, **_frame(len(lines))})


def schedules_chart(schedules: Mapping[str, Schedule]) -> go.Figure:
    """Draw the learning rates of schedules with any names over their steps."""
    text = "step %{x:,}<br>learning rate %{y:.4g}"
    steps = {name: drawn_steps(schedule) for name, schedule in schedules.items()}
    lines = [
        _numbered_line(place, name, steps[name], schedule(steps[name]), text)
        for place, (name, schedule) in enumerate(schedules.items())
    ]
    layout = {
        "xaxis": STEPS,
        "yaxis": {**PLAIN, "title": "learning rate", "rangemode": "tozero"},
    }
    return go.Figure(data=lines, layout={**layout, **_frame(len(lines))})


def drawn_steps(schedule: Schedule) -> IntArray:
    """Steps that are enough to draw a schedule: where it bends or jumps, evenly spaced, and denser towards the end."""
    total, last = schedule.total_steps, schedule.total_steps - 1
    stop = np.cumsum(blocks_of(schedule, np.array([total]), tolerance=0.1, stiffness=1.0).counts)
    even, late = np.linspace(0, last, NUM_DRAWN).round(), total - np.geomspace(1, total, NUM_LATE).round()
    return np.unique(np.concatenate((stop[:-1], stop - 1, even, late)).astype(np.int64))


def _numbered_line(place: int, name: str, x: IntArray, y: ArrayLike, text: str) -> dict[str, Any]:
    """A line with the colour and dashes of its place. Names come from users, so they are escaped."""
    look = {"color": COLOURS[place % len(COLOURS)], "dash": DASHES[place % len(DASHES)], "width": 2.5}
    return {
        "type": "scatter", "x": x, "y": y, "mode": "lines", "name": escape(name), "line": look,
        "hovertemplate": f"{text}<extra>{escape(name)}</extra>",
    }  # fmt: skip


def _band(place: int, forecast: Prediction) -> dict[str, Any]:
    """The area between the ends of the intervals."""
    colour = COLOURS[place % len(COLOURS)]
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return {
        "type": "scatter", "x": np.concatenate((forecast.steps, forecast.steps[::-1])),
        "y": np.concatenate((forecast.low, forecast.high[::-1])), "mode": "lines", "line": {"width": 0},
        "fill": "toself", "fillcolor": f"rgba({red},{green},{blue},0.15)", "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip


def _bound_area(x: IntArray, bound: Array) -> dict[str, Any]:
    return {
        "type": "scatter", "x": x, "y": _above_zero(bound), "mode": "lines", "name": "Bound",
        "line": {"color": GREY, "width": 1}, "fill": "tozeroy", "fillcolor": "rgba(128,128,128,0.2)",
        "hovertemplate": "step %{x:,}<br>no schedule gets below %{y:.4g}<extra>Bound</extra>",
    }  # fmt: skip


def _above_zero(values: Array) -> Array:
    """Values that a logarithmic axis can show; the others become NaN, which leaves a gap."""
    return np.where((values > 0) & np.isfinite(values), values, np.nan)


def _frame(num_names: int, height: int = HEIGHT) -> dict[str, Any]:
    """Layout that fits a phone: legend below, small margins. Zoomed axes stay zoomed while a slider moves.

    Args:
        num_names: Number of names in the legend.
        height: Height of the figure with three lines of legend.
    """
    room = LINE_ROOM * max(-(-num_names // 2), 1)
    whole = height + room - 3 * LINE_ROOM
    return {
        "height": whole,
        "margin": {**MARGIN, "b": AXIS_ROOM + room},
        "legend": {"orientation": "h", "yanchor": "top", "yref": "container", "y": room / whole, "x": 0},
        "hovermode": "closest",
        "bargap": 0,
        "uirevision": "kept",
    }


def fitted_curves(forecast: Forecast, runs: Iterable[LoggedRun]) -> list[FittedCurve]:
    """The logged curves after the warmup, and the fit to them."""
    curves = []
    for run in runs:
        after = run.steps >= max(coverage_of(run.schedule, run.peak_lr).warmup_steps, 1)
        steps = run.steps[after]
        curves.append(FittedCurve(run.name, steps, run.losses[after], forecast.predict(run.schedule, steps).loss))
    return curves


def loss_range(curves: Iterable[tuple[IntArray, Array]]) -> tuple[float, float]:
    """The range of a figure's loss axis: without the high losses of the first fifth of every run."""
    late = [values[steps >= EARLY * steps[-1]] for steps, values in curves]
    low, high = min(float(part.min()) for part in late), max(float(part.max()) for part in late)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def band_range(forecasts: Mapping[str, Prediction]) -> tuple[float, float]:
    """The range of the loss axis that contains the bands; see :func:`loss_range`."""
    return loss_range([(f.steps, end) for f in forecasts.values() for end in (f.low, f.high)])
