"""Interactive charts, with plotly.

Each chart is built in a single constructor call: plotly validates whatever is added later again and again, which takes
ten times as long.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eigencurve._arrays import Array, IntArray
from eigencurve.figures.style import COLOURS as PALETTE
from eigencurve.forecast.forecast import Prediction
from eigencurve.planning.forecasts import FittedCurve, band_range, loss_range
from eigencurve.planning.labels import BEST, LABELS
from eigencurve.planning.loss_view import LossView
from eigencurve.planning.spectrum_view import SpectrumView
from eigencurve.schedules.base import Schedule
from eigencurve.theory.blocks import blocks_of

try:
    import plotly.graph_objects as go
except ImportError as error:
    raise ImportError("eigencurve.figures.interactive needs plotly: pip install eigencurve[studio]") from error

# Black would vanish on a dark page, so grey replaces it. A kind of schedule always has the same colour and dash.
COLOURS = PALETTE[:-1]
DASHES = ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot")
GREY = "#808080"
HEIGHT = 380
# Margins in pixels. The bottom has room for the axis title and the legend, which has two names a line on a phone.
MARGIN = {"l": 62, "r": 8, "t": 8}
AXIS_ROOM, LINE_ROOM = 54, 20.5
# The logarithmic axis ends at this fraction of the first rate, because the last rates of a cosine are nearly zero.
LOWEST = 1e-5
# Fixed margins and plain labels: measuring text takes the browser several times as long.
PLAIN = {"automargin": False, "exponentformat": "e"}
LOG = {**PLAIN, "type": "log"}
STEPS = {"automargin": False, "exponentformat": "none", "separatethousands": True, "title": "step"}
# Number of labels on the axis of eigenvalues that fit on a phone.
NUM_LABELS = 4
# Steps at which every curve of rates is drawn: this many evenly spaced, and this many geometrically towards the end.
NUM_DRAWN, NUM_LATE = 121, 40


def spectrum_chart(view: SpectrumView) -> go.Figure:
    """Draw shares per octave on logarithmic axes, negative eigenvalues on the left and positive ones on the right."""
    shares = np.concatenate((view.positive, view.negative))
    traces = [_bars(view, view.positive, "positive", COLOURS[0], "x"), _density(view)]
    layout: dict[str, Any] = {
        "xaxis": {**_octave_axis(view, len(view.lower)), "title": "λ + weight decay"},
        "yaxis": {**LOG, "title": "share of all", "range": [math.log10(shares[shares > 0].min()) - 0.3, 0.3]},
    }
    reach = int(np.flatnonzero(view.negative > 0).max(initial=-1)) + 1
    if reach:
        part = 0.96 * reach / (reach + len(view.lower))
        traces.insert(0, _bars(view, view.negative, "negative", COLOURS[4], "x2"))
        mirrored = _octave_axis(view, reach)
        layout["xaxis2"] = {
            **mirrored, "title": "−λ + weight decay", "range": mirrored["range"][::-1], "domain": [0, part]
        }  # fmt: skip
        layout["xaxis"]["domain"] = [part + 0.04, 1]
        layout["yaxis"]["anchor"] = "x2"
    return go.Figure(data=traces, layout={**layout, **_frame(2 * len(traces))})


def rates_chart(schedules: Mapping[str, Schedule], steps_per_epoch: int, lr: float) -> go.Figure:
    """Draw learning rates over the epochs, on a linear axis and below it on a logarithmic axis.

    Args:
        schedules: Schedules by kind; the names are keys of ``LABELS``.
        steps_per_epoch: Number of steps in an epoch.
        lr: Highest learning rate on the logarithmic axis.
    """
    text = "epoch %{x:.4g}<br>learning rate %{y:.4g}"
    steps = {name: drawn_steps(schedule) for name, schedule in schedules.items()}
    rates = {name: schedule(steps[name]) for name, schedule in schedules.items()}
    upper = [_line(name, steps[name] / steps_per_epoch, rates[name], text) for name in schedules]
    lower = [{**line, "y": _above_zero(line["y"]), "yaxis": "y2", "showlegend": False} for line in upper]
    least = min(float(values[values > 0].min()) for values in rates.values())
    reach = [math.log10(max(least, LOWEST * lr)) - 0.1, math.log10(lr) + 0.1]
    layout = {
        "xaxis": {**PLAIN, "title": "epoch", "anchor": "y2"},
        "yaxis": {**PLAIN, "title": "learning rate", "rangemode": "tozero", "domain": [0.54, 1]},
        "yaxis2": {**LOG, "title": "learning rate (log)", "range": reach, "dtick": 1, "domain": [0, 0.46]},
    }
    return go.Figure(data=[*upper, *lower], layout={**layout, **_frame(len(upper), height=2 * HEIGHT - 100)})


def losses_chart(view: LossView, steps_per_epoch: int, axis: str) -> go.Figure:
    """Draw the expected loss of every schedule along the run, and the bound that none can beat, if there is one."""
    seen = view.marks >= (1 if axis == "log" else 0)
    epochs = view.marks[seen] / steps_per_epoch
    text = "epoch %{x:.4g}<br>expected loss %{y:.4g}"
    bounds = [] if view.bound is None else [_bound_area(epochs, view.bound[seen])]
    lines = [_line(row.name, epochs, _above_zero(row.curve[seen]), text) for row in view.rows]
    layout = {
        "xaxis": {**PLAIN, "title": "epoch", "type": axis},
        "yaxis": {**LOG, "title": "expected loss", "range": _loss_range(view)},
    }
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


def style_of(name: str) -> dict[str, Any]:
    """Colour, dash and width of a schedule's line."""
    if name == BEST:
        return {"color": GREY, "dash": "solid", "width": 4}
    place = list(LABELS).index(name)
    again = place // len(COLOURS)
    return {"color": COLOURS[place % len(COLOURS)], "dash": DASHES[(place + again) % len(DASHES)], "width": 2.5}


def drawn_steps(schedule: Schedule) -> IntArray:
    """Steps that are enough to draw a schedule: where it bends or jumps, evenly spaced, and denser towards the end."""
    total, last = schedule.total_steps, schedule.total_steps - 1
    stop = np.cumsum(blocks_of(schedule, np.array([total]), tolerance=0.1, stiffness=1.0).counts)
    even, late = np.linspace(0, last, NUM_DRAWN).round(), total - np.geomspace(1, total, NUM_LATE).round()
    return np.unique(np.concatenate((stop[:-1], stop - 1, even, late)).astype(np.int64))


def _line(name: str, x: Array, y: ArrayLike, text: str) -> dict[str, Any]:
    label = LABELS[name]
    hover = f"{text}<extra>{label}</extra>"
    return {
        "type": "scatter", "x": x, "y": y, "mode": "lines", "name": label, "line": style_of(name),
        "hovertemplate": hover,
    }  # fmt: skip


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


def _bound_area(x: Array, bound: Array) -> dict[str, Any]:
    return {
        "type": "scatter", "x": x, "y": _above_zero(bound), "mode": "lines", "name": "Bound",
        "line": {"color": GREY, "width": 1}, "fill": "tozeroy", "fillcolor": "rgba(128,128,128,0.2)",
        "hovertemplate": "epoch %{x:.4g}<br>no schedule gets below %{y:.4g}<extra>Bound</extra>",
    }  # fmt: skip


def _bars(view: SpectrumView, share: Array, name: str, colour: str, axis: str) -> dict[str, Any]:
    return {
        "type": "bar", "x": view.lower, "y": _above_zero(share), "width": view.lower, "offset": 0, "name": name,
        "xaxis": axis, "marker": {"color": colour, "opacity": 0.6, "line": {"width": 0.5, "color": "white"}},
        "customdata": 2 * view.lower,
        "hovertemplate": "%{x:.3g} to %{customdata:.3g}<br>share %{y:.3g}<extra>" + name + "</extra>",
    }  # fmt: skip


def _octave_axis(view: SpectrumView, count: int) -> dict[str, Any]:
    """A logarithmic axis with room for the first ``count`` octaves, and few labels."""
    low, high = math.log10(view.mu) - 0.05, math.log10(2 * view.lower[count - 1]) + 0.05
    return {**LOG, "range": [low, high], "dtick": max(1, math.ceil((high - low) / NUM_LABELS)), "tickangle": 0}


def _density(view: SpectrumView) -> dict[str, Any]:
    return {
        "type": "scatter", "x": view.curve, "y": _above_zero(view.density), "mode": "lines",
        "name": "smooth share per octave", "line": {"color": COLOURS[1], "width": 2},
        "hovertemplate": "λ = %{x:.3g}<br>%{y:.3g} per octave<extra></extra>",
    }  # fmt: skip


def _above_zero(values: Array) -> Array:
    """Values that a logarithmic axis can show; the others become NaN, which leaves a gap."""
    return np.where((values > 0) & np.isfinite(values), values, np.nan)


def _loss_range(view: LossView) -> list[float]:
    """Range of the loss axis: from just below the lowest value to at most three times the initial loss."""
    bounds = [] if view.bound is None else [view.bound]
    values = np.concatenate([*bounds, *(row.curve for row in view.rows)])
    shown = values[np.isfinite(values) & (values > 0)]
    top = min(float(shown.max()), 3 * float(view.rows[0].curve[0]))
    return [math.log10(max(float(shown.min()), 1e-12 * top)) - 0.1, math.log10(top) + 0.1]


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
