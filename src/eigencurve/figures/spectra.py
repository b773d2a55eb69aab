"""Spectra as bar charts of octaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigencurve import _check
from eigencurve.figures.canvas import PANEL, Figure
from eigencurve.figures.style import COLOURS, style
from eigencurve.spectrum.groups import group
from eigencurve.spectrum.power_law import PowerLaw, fitted_law
from eigencurve.spectrum.source import SpectrumSource
from eigencurve.spectrum.spectrum import Spectrum


def octave_figure(subject: SpectrumSource, title: str = "") -> Figure:
    """Draw a spectrum by octaves with error bars and power law; negative eigenvalues get a panel of their own."""
    apart = subject.fraction_negative > 0
    figure = Figure(figsize=(11, 4.5) if apart else (7, 4.5), layout="constrained")
    panels = figure.subplots(1, 1 + apart, squeeze=False, sharey=True, width_ratios=(2, 1)[: 1 + apart])[0]
    draw_octaves(panels[0], subject)
    if apart:
        draw_negative(panels[1], subject)
    figure.suptitle(title)
    return figure


def octave_panel(subject: SpectrumSource) -> Figure:
    """Draw the octaves in one panel."""
    figure = Figure(figsize=PANEL, layout="constrained")
    draw_octaves(figure.subplots(), subject)
    return figure


def negative_panel(subject: SpectrumSource) -> Figure:
    """Draw the negative eigenvalues in one panel."""
    figure = Figure(figsize=PANEL, layout="constrained")
    draw_negative(figure.subplots(), subject)
    return figure


def draw_octaves(axes: Any, subject: SpectrumSource) -> None:
    """Draw the share of each octave of |λ| + weight decay, the power law, and error bars and Lanczos nodes if known."""
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


def draw_negative(axes: Any, subject: SpectrumSource) -> None:
    """Draw the share of negative eigenvalues in each octave of |λ| + weight decay."""
    raw = subject.raw
    if isinstance(raw, PowerLaw) or not (raw.eigenvalues < 0).any():
        _check.refuse("draw_negative", "subject", "a spectrum with negative eigenvalues", subject.name)
    weights = np.where(raw.eigenvalues < 0, raw.weights, 0.0)
    part = Spectrum(np.abs(raw.eigenvalues) + subject.weight_decay, weights)
    share = float(weights.sum())
    _bars(axes, part, f"negative: {share:.2%} of all", share, COLOURS[3], "///")
    _log_axes(axes, "|eigenvalue| + weight decay")


def _draw_law(axes: Any, subject: SpectrumSource) -> None:
    if isinstance(subject.prepared, PowerLaw) or subject.prepared.kappa == 1:
        return
    law = fitted_law(subject.prepared)
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
