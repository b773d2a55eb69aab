"""The demo's page: Markdown with figures, and the same as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eigencurve._arrays import Array
from eigencurve.experiments.page import ResultsPage
from eigencurve.figures.canvas import Figure
from eigencurve.figures.curves import curves_panel
from eigencurve.figures.rates import rates_figure
from eigencurve.figures.spectra import octave_panel
from eigencurve.hessian.estimate import SpectrumEstimate
from eigencurve.planning.subject import Subject
from eigencurve.report.page import Section, code_block, figure, page, paragraph
from eigencurve.report.svg import inline_svg
from eigencurve.schedules.base import Schedule

SMOOTHED_OVER = 15
TITLE = "From a network to its schedule"
INTRO = (
    "A small convolutional net is trained on handwritten digits. Its spectrum is measured, turned into a schedule, and"
    " the schedule races against others from scratch."
)


def demo_page(
    estimate: SpectrumEstimate,
    schedules: Mapping[str, Schedule],
    losses: Mapping[str, Array],
    description: str,
    table: str,
) -> ResultsPage:
    """The page of the demo.

    Args:
        estimate: Estimate of the spectrum.
        schedules: Schedules in the race, by name; the first is Eigencurve.
        losses: Training loss of every step, averaged over the starts, by schedule.
        description: Description of the spectrum.
        table: Result of the race.
    """
    subject = Subject("the small network", estimate.spectrum, estimate.weight_decay, estimate.measurement())
    texts = {
        f"Its spectrum, from {estimate.num_products} Hessian products ({estimate.reason})": description,
        "The schedule that it calls for": str(next(iter(schedules.values())).describe()),
        "The race": table,
    }
    drawn = {
        "spectrum": (octave_panel(subject), "The share of the eigenvalues in every octave, with standard errors."),
        "learning-rates": (rates_figure(dict(schedules), "log"), f"The learning rates of {', '.join(schedules)}."),
        "training": (_training(losses), f"Training loss of {', '.join(losses)}: the mean over all starts."),
    }
    parts = [f"{heading}:\n\n```\n{text}\n```" for heading, text in texts.items()]
    pictures = [f"![{name}]({name}.png)" for name in drawn]
    return ResultsPage(
        "demo", TITLE, "\n\n".join([INTRO, *parts, *pictures]),
        {f"{name}.png": picture for name, (picture, _) in drawn.items()}, {"index.html": _html(drawn, texts)},
    )  # fmt: skip


def _html(drawn: Mapping[str, tuple[Figure, str]], texts: Mapping[str, str]) -> bytes:
    pictures = [figure(inline_svg(picture, name, text), text) for name, (picture, text) in drawn.items()]
    tables = [block for heading, text in texts.items() for block in (paragraph(heading), code_block(text))]
    sections = [Section("Figures", pictures), Section("Tables", tables)]
    return page(TITLE, [paragraph(INTRO)], sections).encode()


def _training(losses: Mapping[str, Array]) -> Figure:
    window = np.ones(SMOOTHED_OVER) / SMOOTHED_OVER
    smooth = {name: np.convolve(values, window, mode="valid") for name, values in losses.items()}
    curves = {name: (np.arange(len(values)), values) for name, values in smooth.items()}
    return curves_panel(curves, "step", f"training loss, mean of {SMOOTHED_OVER} steps")
