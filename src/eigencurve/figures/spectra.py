"""Spectra as bar charts of octaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigencurve.figures.canvas import Figure
from eigencurve.figures.style import COLOURS, style
from eigencurve.spectrum.groups import group
from eigencurve.spectrum.power_law import PowerLaw, fitted_law
from eigencurve.spectrum.source import SpectrumSource
from eigencurve.spectrum.spectrum import Spectrum


def octave_figure(source: SpectrumSource, title: str = "") -> Figure:
    """Draw a spectrum by octaves with error bars and power law; negative eigenvalues get a panel of their own."""
    apart = source.fraction_negative > 0
    figure = Figure(figsize=(11, 4.5) if apart else (7, 4.5), layout="constrained")
    panels = figure.subplots(1, 1 + apart, squeeze=False, sharey=True, width_ratios=(2, 1)[: 1 + apart])[0]
    _draw_octaves(panels[0], source)
    if apart and isinstance(source.raw, Spectrum):
        _draw_negative(panels[1], source.raw, source.weight_decay)
    figure.suptitle(title)
    return figure


def _draw_octaves(axes: Any, source: SpectrumSource) -> None:
    """Draw the share of each octave of |λ| + weight decay, the power law, and error bars and Lanczos nodes if known."""
    _bars(axes, source.prepared, "share of the octave")
    measured = source.octaves
    if measured is not None:
        below = np.minimum(measured.error, 0.99 * measured.share)
        axes.errorbar(
            measured.lower * np.sqrt(2), measured.share, yerr=(below, measured.error), fmt="none", ecolor="#000000",
            elinewidth=1, capsize=2, label="standard error",
        )  # fmt: skip
    if source.measurement is not None:
        nodes, weights = source.measurement.nodes, source.measurement.weights
        seen = weights > float(group(source.prepared).share.min()) / 10
        heights = np.abs(nodes[seen]) + source.weight_decay
        axes.plot(heights, weights[seen], "x", markersize=3, color=COLOURS[1], label="Lanczos nodes")
    _draw_law(axes, source)
    _log_axes(axes, "|eigenvalue| + weight decay" if source.weight_decay else "eigenvalue")


def _draw_negative(axes: Any, raw: Spectrum, weight_decay: float) -> None:
    """Draw the share of negative eigenvalues in each octave of |λ| + weight decay."""
    weights = np.where(raw.eigenvalues < 0, raw.weights, 0.0)
    part, share = Spectrum(np.abs(raw.eigenvalues) + weight_decay, weights), float(weights.sum())
    _bars(axes, part, f"negative: {share:.2%} of all", share, COLOURS[3], "///")
    _log_axes(axes, "|eigenvalue| + weight decay")


def _draw_law(axes: Any, source: SpectrumSource) -> None:
    if isinstance(source.prepared, PowerLaw) or source.prepared.kappa == 1:
        return
    law = fitted_law(source.prepared)
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
    """Draw a bar for the share of each octave, times ``total``."""
    groups = group(spectrum)
    axes.bar(
        groups.lower, total * groups.share, width=groups.lower, align="edge", alpha=0.45, color=colour,
        edgecolor="#ffffff", hatch=hatch, label=label,
    )  # fmt: skip


def _log_axes(axes: Any, xlabel: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel=xlabel, ylabel="share of the parameters")
    axes.legend(frameon=False, fontsize="small")
    axes.grid(alpha=0.3)
