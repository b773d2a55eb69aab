"""How close Eigencurve is to cosine decay, on the published spectra (also with fewer nodes) and on power laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from eigencurve import PowerLaw, Schedule, Spectrum, cosine, eigencurve
from eigencurve.figures.style import COLOURS, DASHES
from eigencurve.spectrum import prepare
from paper.data.folder import published_spectrum
from paper.engine.request import Request
from paper.page import ResultsPage, markdown_table, page_with_figure
from paper.theory.extra_terms import SETTINGS, Setting

# The paper's values for 10 and for 100 epochs, and the limit that the second approximates.
BETAS = (2.0, 1.000005, 1.0)
# Largest number of nodes per octave: neighbouring nodes are merged, evenly in ln λ. None merges nothing.
PER_OCTAVE = (None, 64, 16, 4)
EXPONENTS = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0)


@dataclass(frozen=True)
class Likeness:
    """The distance of Eigencurve to cosine decay on one spectrum."""

    setting: Setting  # spectrum, and the run that the paper assumes for it
    by_steps: dict[int, tuple[float, ...]]  # distance for each β in `BETAS`, by total steps T
    # Distance for each β in `BETAS`, by number of nodes; at half of the paper's T.
    by_nodes: dict[int, tuple[float, ...]]
    curves: tuple[Schedule, ...]  # schedule for each β in `BETAS`, at half of the paper's T


def distance(schedule: Schedule) -> float:
    """Mean over the steps of |f(t) - cosine(t)|, relative to the initial rate."""
    other = cosine(schedule.total_steps, schedule.lr)
    return float(np.abs(schedule.values() - other.values()).mean() / schedule.lr)


def joined(spectrum: Spectrum, per_octave: int | None) -> Spectrum:
    """The same distribution with at most ``per_octave`` nodes per octave; neighbours are merged at their mean."""
    if per_octave is None:
        return spectrum
    cell = np.floor(per_octave * np.log2(spectrum.eigenvalues / spectrum.mu)).astype(np.int64)
    cell[0], cell[-1] = -1, cell[-1] + 1  # the smallest and the largest node are not merged
    weights = np.bincount(cell + 1, spectrum.weights)
    sums = np.bincount(cell + 1, spectrum.weights * spectrum.eigenvalues)
    filled = weights > 0
    return Spectrum(sums[filled] / weights[filled], weights[filled], spectrum.dim)


def make(request: Request) -> ResultsPage:
    """The page that compares Eigencurve with cosine decay."""
    found = measure(request.data)
    return page_with_figure("theory/cosine", "Eigencurve compared with cosine decay", figure(found), text(found))


def measure(data: Path | None) -> list[Likeness]:
    """Every published spectrum at a quarter, a half and all of the paper's steps."""
    return [_likeness(setting, data) for setting in SETTINGS]


def law_distances(kappa: float, total_steps: int) -> dict[float, float]:
    """The distance for the power law with each exponent in ``EXPONENTS``."""
    return {a: distance(eigencurve(PowerLaw(a, 1.0, kappa), total_steps, 1.0)) for a in EXPONENTS}


def text(found: list[Likeness]) -> str:
    """The tables, in Markdown."""
    return "\n\n".join([
        "The paper explains the success of cosine decay by Eigencurve: on ResNet-18's spectrum the two curves nearly "
        "coincide. The distance below is the mean over all steps of abs(f - cosine), relative to the initial rate; at "
        "0.04 two curves look nearly the same. β = 1.000005 is the paper's choice for long runs and makes every node a "
        "group of its own. β → 1 is the limit for a density, which does not depend on the number of nodes.",
        "## By length of the run", _table(found, "T", lambda one: one.by_steps),
        "## By number of nodes",
        "The same distributions, with neighbouring nodes merged until no octave has more than 64, 16 or 4 of them, at "
        "half of the paper's steps (100 epochs on CIFAR-10, 45 on ImageNet). The loss is the same, only its "
        "description changes. β = 2 and the limit hardly change. With one group per node, n nodes that share an octave "
        "get √n times its time, and a Lanczos run has far more nodes in the upper octaves than in the lower ones.",
        _table(found, "nodes", lambda one: one.by_nodes),
        "## Power laws",
        "Densities λ^-α, for several exponents α (β = 2):", _law_table(),
    ])  # fmt: skip


def figure(found: list[Likeness]) -> Figure:
    """The schedules for every spectrum, and cosine decay."""
    page = Figure(figsize=(12, 6.5), layout="constrained")
    for axes, one in zip(page.subplots(2, 2).flat, found, strict=True):
        steps = np.linspace(0, one.curves[0].total_steps - 1, 1000).astype(np.int64)
        axes.plot(steps, cosine(one.curves[0].total_steps, 1.0)(steps), color=COLOURS[0], label="cosine")
        for k, (beta, curve) in enumerate(zip(BETAS, one.curves, strict=True)):
            name = "eigencurve, β → 1" if beta == 1 else f"eigencurve, β = {beta:.7g}"
            axes.plot(steps, curve(steps), color=COLOURS[k + 1], linestyle=DASHES[k + 1], label=name)
        axes.set(title=one.setting.title, xlabel="step", ylabel="rate / initial rate")
        axes.grid(alpha=0.3)
    page.axes[0].legend(frameon=False)
    return page


def _likeness(setting: Setting, data: Path | None) -> Likeness:
    spectrum = prepare(published_spectrum(data, setting.file), setting.weight_decay)
    half = setting.total_steps // 2
    lengths = (setting.total_steps // 4, half, setting.total_steps)
    fewer = [joined(spectrum, count) for count in PER_OCTAVE]
    return Likeness(
        setting=setting,
        by_steps={T: tuple(distance(c) for c in _curves(spectrum, T)) for T in lengths},
        by_nodes={len(some): tuple(distance(c) for c in _curves(some, half)) for some in fewer},
        curves=_curves(spectrum, half),
    )


def _curves(spectrum: Spectrum, total_steps: int) -> tuple[Schedule, ...]:
    return tuple(eigencurve(spectrum, total_steps, 1.0, beta=beta) for beta in BETAS)


def _table(found: list[Likeness], column: str, rows_of: Callable[[Likeness], dict[int, tuple[float, ...]]]) -> str:
    rows = [
        [one.setting.title, f"{number:,}", *(f"{value:.3f}" for value in values)]
        for one in found
        for number, values in rows_of(one).items()
    ]
    return markdown_table(["spectrum", column, "β = 2", "β = 1.000005", "β → 1"], rows)


def _law_table() -> str:
    cases = ((1e2, 10**5), (1e4, 10**5), (1e6, 10**5))
    columns = [law_distances(kappa, steps) for kappa, steps in cases]
    names = (f"κ = 10^{np.log10(kappa):.0f}, T = {steps:,}" for kappa, steps in cases)
    rows = [[f"{a:g}", *(f"{column[a]:.3f}" for column in columns)] for a in EXPONENTS]
    return markdown_table(["α", *names], rows)
