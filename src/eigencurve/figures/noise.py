"""The gradient noise per octave of a spectrum, with error bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eigencurve.figures.canvas import Figure
from eigencurve.figures.style import COLOURS, style
from eigencurve.schedules.base import Schedule
from eigencurve.spectrum.noise import NoiseEstimate

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# An octave whose error is larger than its value is not drawn: on a logarithmic axis its bar has no lower end.
LARGEST_ERROR = 1.0


def noise_figure(noises: Mapping[str, NoiseEstimate], schedules: Mapping[str, Schedule], title: str = "") -> Figure:
    """Draw σ² per octave of several estimates in one panel, and schedules relative to their peak in another.

    Args:
        noises: Estimates by label.
        schedules: Schedules by label; the same label gets the same colour as in ``noises``.
        title: Title of the figure.
    """
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_noise(left, noises)
    for place, (label, schedule) in enumerate(schedules.items()):
        steps = np.unique(np.linspace(0, schedule.total_steps - 1, 400).round().astype(np.int64))
        right.plot(steps, np.asarray(schedule(steps)) / schedule(0), label=label, linewidth=1.6, **style(place))
    right.set(yscale="log", xlabel="step", ylabel="learning rate / peak", title="Eigencurve schedule")
    right.legend(frameon=False, fontsize="small")
    right.grid(alpha=0.3)
    figure.suptitle(title)
    return figure


def draw_noise(axes: Any, noises: Mapping[str, NoiseEstimate]) -> None:
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
    axes.legend(frameon=False, fontsize="small")
    axes.grid(alpha=0.3)
