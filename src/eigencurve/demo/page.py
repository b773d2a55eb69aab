"""What the demo shows: a summary for the terminal, one self-contained HTML file, and plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eigencurve._html import Section, code_block, figure, page, paragraph
from eigencurve.adapters.range_test import RangeTest
from eigencurve.demo.race import Racer, Tuned, mean_and_error, race_table, tuning_table
from eigencurve.figures.canvas import Figure
from eigencurve.figures.curves import curves_panel
from eigencurve.figures.inline import inline_svg
from eigencurve.figures.race import race_figure
from eigencurve.figures.schedules import rates_figure
from eigencurve.figures.spectra import octave_panel
from eigencurve.hessian.estimate import SpectrumEstimate
from eigencurve.planning.result import Plan
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.source import SpectrumSource
from eigencurve.spectrum.start import StartEstimate

SMOOTHED_OVER = 15
TITLE = "From a network to its schedule"
INTRO = (
    "A small network is trained on handwritten digits. Its spectrum, its gradient noise and its start are measured, "
    "the plan recommends a schedule for the next run, and the recommendation races against the usual schedules, each "
    "at its own best rate."
)


@dataclass(frozen=True, eq=False)
class DemoPage:
    """What the demo shows.

    Attributes:
        summary: The plan, the race and what came out of it, as text.
        html: The same with all details and figures, as one HTML file.
        values: The plan and the race as plain values.
    """

    summary: str
    html: bytes
    values: Mapping[str, object]


@dataclass(frozen=True, eq=False)
class Measured:
    """What is measured on the network.

    Attributes:
        spectrum: Spectrum of the Hessian.
        noise: Gradient noise.
        start: Initial error of a run.
        rates: Range test.
    """

    spectrum: SpectrumEstimate
    noise: NoiseEstimate
    start: StartEstimate
    rates: RangeTest


def demo_page(
    measured: Measured, answer: Plan, tuned: Mapping[str, Tuned], racers: Sequence[Racer], sentences: Sequence[str]
) -> DemoPage:
    """The page of the demo.

    Args:
        measured: What is measured on the network.
        answer: The plan.
        tuned: Every schedule at many rates, by name.
        racers: The race; the first is the recommendation.
        sentences: What came out of the race.
    """
    starts, tries = len(racers[0].losses), len(next(iter(tuned.values())).rates)
    race = f"The race ({starts} starts, mean ± standard error; each schedule at the best of {tries} rates)"
    result = {"The plan": _wrapped(answer), race: race_table(racers)}
    details = {
        "The plan in full": str(answer),
        "Training loss at every rate": tuning_table(tuned),
        "Range test of the rate": str(measured.rates),
        "Spectrum": str(measured.spectrum.spectrum.describe(measured.spectrum.weight_decay)),
        "Gradient noise": str(measured.noise),
        "Start": str(measured.start),
        "Recommended schedule": str(answer.schedule.describe()),
    }
    summary = [f"{heading}:\n\n{text}" for heading, text in result.items()]
    html = _html(_drawn(measured, racers, answer.label), result, sentences, details)
    return DemoPage("\n\n".join([*summary, *sentences]), html, _values(answer, racers))


def _drawn(measured: Measured, racers: Sequence[Racer], chosen: str) -> dict[str, tuple[Figure, str]]:
    estimate = measured.spectrum
    subject = SpectrumSource("the small network", estimate.spectrum, estimate.weight_decay, estimate.measurement())
    lines = [racer for racer in racers if racer.name != chosen]  # the recommendation has the same shape
    names, others = (", ".join(racer.name for racer in some) for some in (racers, lines))
    losses = {racer.name: (*mean_and_error(racer.losses), racer.predicted) for racer in racers}
    return {
        "race": (race_figure(losses, "training loss"), f"Predicted and measured losses of {names}."),
        "learning-rates": (
            rates_figure({racer.name: racer.schedule for racer in lines}, "log"), f"Learning rates of {others}."
        ),
        "training": (training_figure(lines), f"Training loss of {others}: the mean over all starts."),
        "spectrum": (octave_panel(subject), "The share of the eigenvalues in every octave, with standard errors."),
    }  # fmt: skip


def _wrapped(answer: Plan) -> str:
    """The verdict as the plan prints it: its lines up to the table."""
    return str(answer).split("\n\n", 1)[0]


def _html(
    drawn: Mapping[str, tuple[Figure, str]],
    result: Mapping[str, str],
    sentences: Sequence[str],
    details: Mapping[str, str],
) -> bytes:
    pictures = [figure(inline_svg(picture, name, text), text) for name, (picture, text) in drawn.items()]
    tables, more = (
        [block for heading, text in texts.items() for block in (paragraph(heading), code_block(text))]
        for texts in (result, details)
    )
    sections = [
        Section("Result", [*tables, *map(paragraph, sentences)]), Section("Figures", pictures), Section("Details", more)
    ]  # fmt: skip
    return page(TITLE, sections, INTRO).encode()


def _values(answer: Plan, racers: Sequence[Racer]) -> dict[str, object]:
    return {
        "plan": answer.to_dict(),
        "race": [
            {"name": racer.name, "peak_lr": racer.peak, "losses": racer.losses.tolist(),
             "predicted": racer.predicted if np.isfinite(racer.predicted) else None}
            for racer in racers
        ],
    }  # fmt: skip


def training_figure(racers: Sequence[Racer]) -> Figure:
    """The loss of every batch during training, smoothed over a few steps."""
    window = np.ones(SMOOTHED_OVER) / SMOOTHED_OVER
    smooth = {racer.name: np.convolve(racer.curve, window, mode="valid") for racer in racers}
    curves = {name: (np.arange(len(values)), values) for name, values in smooth.items()}
    return curves_panel(curves, "step", f"training loss, mean of {SMOOTHED_OVER} steps")
