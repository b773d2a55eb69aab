"""The demo's figures, and one self-contained page that shows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from eigencurve._arrays import Array
from eigencurve._files import write_atomically
from eigencurve.figures.curves import curves_panel
from eigencurve.figures.files import figure_bytes
from eigencurve.figures.rates import rates_figure
from eigencurve.figures.spectra import octave_panel
from eigencurve.hessian.estimate import SpectrumEstimate
from eigencurve.planning.subject import Subject
from eigencurve.report.page import Section, code_block, figure, page, paragraph
from eigencurve.report.svg import inline_svg
from eigencurve.schedules.base import Schedule

SMOOTHED_OVER = 15


def write_page(
    folder: Path, estimate: SpectrumEstimate, schedules: dict[str, Schedule], losses: dict[str, Array], texts: list[str]
) -> Path:
    """Write three figures as PNG and ``index.html`` with them inside; returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    subject = Subject("the small network", estimate.spectrum, estimate.weight_decay, estimate.measurement())
    drawn = {
        "spectrum": (octave_panel(subject), "The share of the eigenvalues in every octave, with standard errors."),
        "learning-rates": (rates_figure(schedules, "log"), f"The learning rates of {', '.join(schedules)}."),
        "training": (_training(losses), f"Training loss of {', '.join(losses)}: the mean over all starts."),
    }
    for name, (picture, _) in drawn.items():
        write_atomically(folder / f"{name}.png", figure_bytes(picture, ".png"))
    pictures = [figure(inline_svg(picture, name, text), text) for name, (picture, text) in drawn.items()]
    sections = [Section("Figures", pictures), Section("Tables", [code_block(text) for text in texts])]
    intro = "A small convolutional net on handwritten digits: its spectrum, its schedule, and a race from scratch."
    target = folder / "index.html"
    write_atomically(target, page("From a network to its schedule", [paragraph(intro)], sections).encode())
    return target


def _training(losses: dict[str, Array]) -> Figure:
    window = np.ones(SMOOTHED_OVER) / SMOOTHED_OVER
    smooth = {name: np.convolve(values, window, mode="valid") for name, values in losses.items()}
    curves = {name: (np.arange(len(values)), values) for name, values in smooth.items()}
    return curves_panel(curves, "step", f"training loss, mean of {SMOOTHED_OVER} steps")
