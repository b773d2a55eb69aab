"""The best schedule for a published spectrum beside the classic ones, each at its best rate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from eigencurve.figures.style import COLOURS, DASHES
from eigencurve.spectrum.files import load_spectrum
from eigencurve.spectrum.spectrum import prepare
from eigencurve.theory.candidates import classic_schedules
from eigencurve.theory.comparison import Comparison
from eigencurve.theory.optimal import Search
from eigencurve.theory.quadratic import NoisyQuadratic

FILE = "resnet-18_cifar10.txt"
WEIGHT_DECAY = 5e-4
# (T, σ²): 100 epochs of 391 batches where the noise hardly matters and where it does, and 10 epochs of much noise
CASES = ((39_100, 1.0), (39_100, 1e4), (3_910, 1e4))
SHOWN = ("best found", "eigencurve", "linear", "cosine", "elastic step", "step decay")


@dataclass(frozen=True)
class Case:
    """One horizon and noise level: what was found, and the table of all schedules."""

    total_steps: int
    noise: float
    found: Search
    table: Comparison


def measure(folder: Path) -> list[Case]:
    """Every case, with initial errors 1 and rates up to 2/L (about ten seconds)."""
    spectrum = prepare(load_spectrum(folder / "spectra" / FILE), WEIGHT_DECAY)
    return [_case(NoisyQuadratic(spectrum, noise, 1.0), steps, noise) for steps, noise in CASES]


def text(cases: list[Case]) -> str:
    """The tables, in Markdown."""
    parts = [
        f"The spectrum {FILE} with weight decay {WEIGHT_DECAY:g}, initial errors 1 (so the loss begins at 0.5), rates "
        "up to 2/L. 'best for λ' is the schedule that would be best if all eigenvalues were λ; 'gap' is to the lower "
        "bound, below which no schedule can go."
    ]
    for case in cases:
        search = f"Search: begun from '{case.found.start}', {case.found.status}."
        parts.append(f"## T = {case.total_steps:,}, σ² = {case.noise:g}\n\n```\n{case.table}\n```\n\n{search}")
    return "\n\n".join(parts)


def figure(cases: list[Case]) -> Figure:
    """The learning rates, a panel a case."""
    page = Figure(figsize=(14, 4.2), layout="constrained")
    for axes, case in zip(page.subplots(1, len(cases)), cases, strict=True):
        for k, name in enumerate(SHOWN):
            style = {"color": COLOURS[k], "linestyle": DASHES[k]}
            axes.plot(case.table[name].schedule.values() / case.table.max_lr, label=name, **style)
        axes.set(xlabel="step", yscale="log", ylim=(1e-3, 1.2), title=f"T = {case.total_steps:,}, σ² = {case.noise:g}")
        axes.grid(alpha=0.3)
    page.axes[0].set_ylabel("learning rate / (2/L)")
    page.axes[0].legend(frameon=False)
    return page


def _case(problem: NoisyQuadratic, total_steps: int, noise: float) -> Case:
    max_lr = 2 / problem.spectrum.L
    found = problem.search_best(total_steps, max_lr)
    classics = classic_schedules(problem.spectrum, problem.nodes, total_steps, max_lr)
    table = problem.compare({**classics, "best found": found.schedule}, max_lr=max_lr, tune_lr=True)
    return Case(total_steps, noise, found, table)
