"""The best schedule for a published spectrum, compared with the classic ones, each at its best rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from eigencurve import NoisyQuadratic
from eigencurve.figures.style import COLOURS, DASHES
from eigencurve.schedules.comparison import ComparisonTable
from eigencurve.spectrum import prepare
from eigencurve.theory.optimal import Search
from eigencurve.theory.starting_points import starting_points
from paper.data.folder import RESNET_CIFAR10, published_spectrum
from paper.engine.request import Request
from paper.page import ResultsPage, markdown_table, page_with_figure

WEIGHT_DECAY = 5e-4
# (T, σ²): 100 epochs of 391 batches with little and with much noise, and 10 epochs with much noise.
CASES = ((39_100, 1.0), (39_100, 1e4), (3_910, 1e4))
COLUMNS = ("schedule", "peak lr", "loss", "bias", "variance", "x best", "gap")
SHOWN = ("best found", "eigencurve", "linear", "cosine", "elastic step", "step decay")


@dataclass(frozen=True)
class Case:
    """One horizon and noise level: the best schedule found, and the comparison of all schedules."""

    total_steps: int
    noise: float
    max_lr: float
    found: Search
    table: ComparisonTable


def make(request: Request) -> ResultsPage:
    """The page of the best schedule and the classic ones."""
    cases = measure(request.data)
    return page_with_figure(
        "theory/best", "The best schedule and the classic ones on a published spectrum", figure(cases), text(cases)
    )


def measure(data: Path | None) -> list[Case]:
    """Every case, with initial errors 1 and rates up to 2/L (about ten seconds)."""
    spectrum = prepare(published_spectrum(data, RESNET_CIFAR10), WEIGHT_DECAY)
    return [_case(NoisyQuadratic(spectrum, noise, 1.0), steps, noise) for steps, noise in CASES]


def text(cases: list[Case]) -> str:
    """The tables, in Markdown."""
    parts = [
        f"The published spectrum {RESNET_CIFAR10} with weight decay {WEIGHT_DECAY:g}, initial errors 1 (the loss "
        "starts at 0.5), rates up to 2/L. 'best for λ' is the schedule that would be best if all eigenvalues were λ. "
        "'gap' is the distance to the lower bound, below which no schedule can get."
    ]
    for case in cases:
        search = f"Search: started from '{label(case.found.start)}', {case.found.status}."
        losses = markdown_table(COLUMNS, _rows(case.table))
        parts.append(f"## T = {case.total_steps:,}, σ² = {case.noise:g}\n\n{losses}\n\n{search}")
    return "\n\n".join(parts)


def figure(cases: list[Case]) -> Figure:
    """The learning rates, one panel per case."""
    page = Figure(figsize=(14, 4.2), layout="constrained")
    for axes, case in zip(page.subplots(1, len(cases)), cases, strict=True):
        for k, name in enumerate(SHOWN):
            style = {"color": COLOURS[k], "linestyle": DASHES[k]}
            axes.plot(case.table[name].schedule.values() / case.max_lr, label=name, **style)
        axes.set(xlabel="step", yscale="log", ylim=(1e-3, 1.2), title=f"T = {case.total_steps:,}, σ² = {case.noise:g}")
        axes.grid(alpha=0.3)
    page.axes[0].set_ylabel("learning rate / (2/L)")
    page.axes[0].legend(frameon=False)
    return page


def _rows(table: ComparisonTable) -> list[list[str]]:
    """The cells of the table; the last row is the lower bound."""
    best = table.best.loss or math.nan
    rows = [
        [row.name, f"{row.peak_lr:.4g}", f"{row.loss:.5g}", f"{row.bias:.4g}", f"{row.variance:.4g}",
         f"{(row.loss or math.nan) / best:.3f}", f"{row.gap:.3%}"]
        for row in table.rows
    ]  # fmt: skip
    return [*rows, ["lower bound", f"{table.max_lr:.4g}", f"{table.lower_bound:.6g}", "", "", "", ""]]


def label(name: str) -> str:
    """The name of a starting point for readers."""
    return "eigencurve, optimal lengths" if name == "eigencurve_optimal" else name.replace("_", " ")


def _case(problem: NoisyQuadratic, total_steps: int, noise: float) -> Case:
    max_lr = 2 / problem.spectrum.L
    found = problem.search_best(total_steps, max_lr)
    points = starting_points(problem.spectrum, problem.nodes, total_steps, max_lr)
    classics = {label(name): schedule for name, schedule in points.items()}
    table = problem.compare({**classics, "best found": found.schedule}, max_lr=max_lr, tune_lr=True)
    return Case(total_steps, noise, max_lr, found, table)
