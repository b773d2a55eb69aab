"""The page's figures, for plotly.

Each is made by one call of its constructor: what is added to a figure later is checked again and again, which
takes ten times as long.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eigencurve._arrays import Array
from eigencurve.studio import texts
from eigencurve.studio.view import BEST, CurvesView, LossView, SpectrumView

try:
    import plotly.graph_objects as go
except ImportError as error:
    raise ImportError("eigencurve.studio needs plotly: pip install eigencurve[studio]") from error

# Okabe and Ito's colours, told apart by colour-blind readers, and dashes for those who see none; their black would
# vanish on a dark page, so grey stands for it. A kind keeps its style whatever else is drawn.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot")
GREY = "#808080"
HEIGHT = 380
# In pixels; the lower one has room for the names of an axis and three lines of the legend.
MARGIN = {"l": 62, "r": 8, "t": 8, "b": 116}
# Rates below this part of the first one are cut off the logarithmic axis: cosine's last one is as good as zero.
LOWEST = 1e-5
# Margins are fixed and labels are plain: a browser takes several times as long to find out what room others need.
PLAIN = {"automargin": False, "exponentformat": "e"}
LOG = {**PLAIN, "type": "log"}
# Room for this many labels on the axis of the eigenvalues, where the figure is as narrow as a phone.
NUM_LABELS = 4


def spectrum_figure(view: SpectrumView) -> go.Figure:
    """Shares per octave on logarithmic axes: negative eigenvalues to the left, positive ones to the right."""
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
    return go.Figure(data=traces, layout={**layout, **_frame()})


def rates_figure(view: CurvesView, steps_per_epoch: int, lr: float) -> go.Figure:
    """The learning rate of every schedule over the epochs, on a linear axis and below it on a logarithmic one."""
    text = "epoch %{x:.4g}<br>learning rate %{y:.4g}"
    upper = [_line(name, steps / steps_per_epoch, view.rates[name], text) for name, steps in view.steps.items()]
    lower = [{**line, "y": _above_zero(line["y"]), "yaxis": "y2", "showlegend": False} for line in upper]
    least = min(float(rates[rates > 0].min()) for rates in view.rates.values())
    reach = [math.log10(max(least, LOWEST * lr)) - 0.1, math.log10(lr) + 0.1]
    layout = {
        "xaxis": {**PLAIN, "title": "epoch", "anchor": "y2"},
        "yaxis": {**PLAIN, "title": "learning rate", "rangemode": "tozero", "domain": [0.54, 1]},
        "yaxis2": {**LOG, "title": "the same, logarithmic", "range": reach, "dtick": 1, "domain": [0, 0.46]},
    }
    return go.Figure(data=[*upper, *lower], layout={**layout, **_frame(height=2 * HEIGHT - 100)})


def losses_figure(view: LossView, steps_per_epoch: int, axis: str) -> go.Figure:
    """The expected loss of every schedule, and the bound that none can be below, as training goes on."""
    seen = view.marks >= (1 if axis == "log" else 0)
    epochs = view.marks[seen] / steps_per_epoch
    text = "epoch %{x:.4g}<br>expected loss %{y:.4g}"
    bound = {
        "type": "scatter", "x": epochs, "y": _above_zero(view.bound[seen]), "mode": "lines", "name": "Bound",
        "line": {"color": GREY, "width": 1}, "fill": "tozeroy", "fillcolor": "rgba(128,128,128,0.2)",
        "hovertemplate": "epoch %{x:.4g}<br>no schedule is below %{y:.4g}<extra>Bound</extra>",
    }  # fmt: skip
    lines = [_line(row.name, epochs, _above_zero(row.curve[seen]), text) for row in view.rows]
    layout = {
        "xaxis": {**PLAIN, "title": "epoch", "type": axis},
        "yaxis": {**LOG, "title": "expected loss", "range": _loss_range(view)},
    }
    return go.Figure(data=[bound, *lines], layout={**layout, **_frame()})


def style_of(name: str) -> dict[str, Any]:
    """Colour and dash of a schedule's line."""
    if name == BEST:
        return {"color": GREY, "dash": "solid", "width": 4}
    place = list(texts.LABELS).index(name)
    again = place // len(COLOURS)
    return {"color": COLOURS[place % len(COLOURS)], "dash": DASHES[(place + again) % len(DASHES)], "width": 2.5}


def _line(name: str, x: Array, y: ArrayLike, text: str) -> dict[str, Any]:
    label = texts.LABELS[name]
    hover = f"{text}<extra>{label}</extra>"
    return {
        "type": "scatter", "x": x, "y": y, "mode": "lines", "name": label, "line": style_of(name),
        "hovertemplate": hover,
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
    """What a logarithmic axis can show; the rest is left out."""
    return np.where((values > 0) & np.isfinite(values), values, np.nan)


def _loss_range(view: LossView) -> list[float]:
    """From a little below the lowest to a little above the start; what grows beyond three times that is cut off."""
    values = np.concatenate([view.bound, *(row.curve for row in view.rows)])
    shown = values[np.isfinite(values) & (values > 0)]
    top = min(float(shown.max()), 3 * float(view.bound[0]))
    return [math.log10(max(float(shown.min()), 1e-12 * top)) - 0.1, math.log10(top) + 0.1]


def _frame(height: int = HEIGHT) -> dict[str, Any]:
    """Legend below and little margin, so that it fits a phone; zoomed axes stay as they are while a slider moves."""
    return {
        "height": height,
        "margin": MARGIN,
        "legend": {"orientation": "h", "yanchor": "top", "yref": "container", "y": 62 / height, "x": 0},
        "hovermode": "closest",
        "bargap": 0,
        "uirevision": "kept",
    }
