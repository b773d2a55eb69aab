"""The paper's figures of spectra and schedules: they need no training, only spectra."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from eigencurve._arrays import Array
from eigencurve._files import write_atomically
from eigencurve.experiments.data.folder import data_folder
from eigencurve.experiments.engine.request import Request
from eigencurve.experiments.page import made_by, save_figure
from eigencurve.figures.style import COLOURS, DASHES
from eigencurve.runs.store import Store
from eigencurve.schedules.classic import cosine
from eigencurve.schedules.eigencurve import eigencurve
from eigencurve.schedules.practical import cosine_power
from eigencurve.spectrum.files import load_spectrum
from eigencurve.spectrum.power_law import fit_power_law
from eigencurve.spectrum.spectrum import Spectrum, prepare
from eigencurve.spectrum.zoo import ZOO, zoo_spectrum

STEPS_PER_EPOCH = 391  # 50,000 images in batches of 128
EPOCHS = (50, 100, 200)
# The paper's for its long runs, which takes nearly every node of the estimate for a group of its own; the limit, which
# looks at the density and not at the nodes; and the theory's.
BETAS = {"β = 1.000005": 1.000005, "β → 1": 1.0, "β = 2": 2.0}
LR = 0.1
POWERS = (0.5, 1.0, 2.0)
NUM_BINS = 60


@dataclass(frozen=True)
class Measured:
    """A spectrum.

    Attributes:
        title: what it is of.
        spectrum: as it was measured.
        weight_decay: that it is prepared with.
    """

    title: str
    spectrum: Spectrum
    weight_decay: float

    @cached_property
    def prepared(self) -> Spectrum:
        """|λ| + weight decay."""
        return prepare(self.spectrum, self.weight_decay)


# The files that the paper's authors published; the first is of a ResNet-20, whatever its name says.
PUBLISHED = {
    "resnet-18_cifar10.txt": ("CIFAR-10, published as ResNet-18's", 5e-4),
    "googlenet_cifar10.txt": ("CIFAR-10, GoogLeNet", 5e-4),
    "resnet-18_imagenet.txt": ("ImageNet, ResNet-18", 1e-4),
}


@dataclass(frozen=True)
class Picture:
    """A figure and what is to be said of it."""

    name: str
    figure: Figure
    caption: str


@dataclass(frozen=True)
class FiguresReport:
    """A page of pictures.

    Attributes:
        source: where the spectra come from, in a sentence.
        pictures: in the paper's order.
    """

    source: str
    pictures: tuple[Picture, ...]

    def text(self, command: str) -> str:
        """The page, in Markdown."""
        lines = ["# The paper's figures of spectra and schedules", "", self.source, ""]
        for picture in self.pictures:
            lines += [f"![{picture.name}](figures/{picture.name}.png)", "", picture.caption, ""]
        return "\n".join([*lines, made_by(command), ""])

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"source": self.source, "figures": {picture.name: picture.caption for picture in self.pictures}}

    def write(self, folder: Path, store: Store, command: str) -> Path:  # noqa: ARG002 -- as every report
        """``figures.md``, and the pictures in a folder beside it."""
        (folder / "figures").mkdir(parents=True, exist_ok=True)
        for picture in self.pictures:
            save_figure(picture.figure, folder / "figures" / f"{picture.name}.png")
        write_atomically(folder / "figures.md", self.text(command).encode())
        return folder / "figures.md"


def make_figures(request: Request) -> FiguresReport:
    """All figures, from the published spectra where the data folder has them, else from the shipped one."""
    source, measured = spectra_at_hand(request.data or data_folder())
    first = measured[0]
    large = next((item for item in measured if item.title.startswith("ImageNet")), first)
    pictures = (
        illustration(),
        spectra_picture(measured),
        power_law_picture(large),
        beside_cosine_picture(first),
        cosine_power_picture(),
    )
    return FiguresReport(source, pictures)


def spectra_at_hand(folder: Path | None) -> tuple[str, list[Measured]]:
    """The published spectra under ``folder``/spectra, or the zoo's, and a sentence that says which."""
    files = {name: folder / "spectra" / name for name in PUBLISHED} if folder is not None else {}
    if files and all(path.is_file() for path in files.values()):
        found = [Measured(title, load_spectrum(files[name]), decay) for name, (title, decay) in PUBLISHED.items()]
        return "From the spectra that the paper's authors published (spectra/*.txt of the data folder).", found
    zoo = [Measured(entry.network.split(",")[0], zoo_spectrum(name), entry.weight_decay) for name, entry in ZOO.items()]
    return "From the spectra that this project measured and ships; the published ones were not at hand.", zoo


def illustration() -> Picture:
    """Four groups, and the curve with its pieces."""
    spectrum = Spectrum([1.0, 8.0, 64.0, 512.0], [0.5, 0.25, 0.15, 0.1])
    total = 100
    schedule = eigencurve(spectrum, total, lr=1 / spectrum.L, beta=8.0)
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    steps = np.arange(total)
    axes.plot(steps, schedule(steps), color="black", linewidth=1.8)
    for i, (begin, end) in enumerate(zip(schedule.times[:-1], schedule.times[1:], strict=True)):
        axes.axvspan(begin, end, color=COLOURS[i % len(COLOURS)], alpha=0.15, linewidth=0)
        axes.text((begin + end) / 2, 1.03 / spectrum.L, f"$\\Delta_{i + 1}$", ha="center", va="bottom")
    ticks = [f"$t_{i}$" for i in range(len(schedule.times))]
    axes.set_xticks(schedule.times, [*ticks[:-1], "$t_4 = T$"])
    axes.set_yticks([1 / spectrum.L], ["$1/L$"])
    axes.set(xlim=(0, total), ylim=(0, 1.12 / spectrum.L), ylabel="learning rate $\\eta_t$")
    caption = (
        "Eigencurve is piecewise inverse time decay. For Δᵢ steps its denominator grows at the slope of one group of"
        " eigenvalues, [μβⁱ⁻¹, μβⁱ), the smallest first; Δᵢ goes with the square root of the number of eigenvalues in"
        " the group. Here four groups have 50 %, 25 %, 15 % and 10 % of the eigenvalues, and β = 8 in place of the"
        " paper's 2, for pieces that can be seen."
    )
    return Picture("illustration", figure, caption)


def spectra_picture(measured: list[Measured]) -> Picture:
    """First row: as measured, a linear axis. Second row: prepared, a logarithmic axis."""
    count = len(measured)
    figure = Figure(figsize=(4.2 * max(count, 1.6), 6.5), layout="constrained")
    grid = figure.subplots(2, count, squeeze=False)
    for upper, lower, item in zip(*grid, measured, strict=True):
        raw, prepared = item.spectrum, item.prepared
        _bars(upper, np.linspace(raw.eigenvalues[0], raw.eigenvalues[-1], NUM_BINS + 1), raw, COLOURS[0])
        upper.set(title=item.title, xlabel="eigenvalue", ylabel="share of eigenvalues", yscale="log")
        _bars(lower, _log_edges(prepared, NUM_BINS), prepared, COLOURS[1])
        name = f"|eigenvalue| + {item.weight_decay:g}"
        lower.set(xlabel=name, ylabel="share of eigenvalues", xscale="log", yscale="log")
    caption = (
        "Distributions of the Hessian's eigenvalues; shares are of each of sixty bins, on a logarithmic axis. First"
        " row: as measured, on a linear axis: nearly all eigenvalues are in the bin at zero. Second row: after the"
        " preprocessing (absolute values, plus the weight decay), on a logarithmic axis."
    )
    return Picture("spectra", figure, caption)


def power_law_picture(item: Measured) -> Picture:
    """Density against eigenvalue on two logarithmic axes, and the fitted law."""
    prepared = item.prepared
    law = fit_power_law(prepared)
    edges = _log_edges(prepared, 30)
    shares = _shares(edges, prepared)
    middles, density = np.sqrt(edges[1:] * edges[:-1]), shares / np.diff(edges)
    fitted = np.diff(law.cumulative(edges)) / np.diff(edges)
    figure = Figure(figsize=(6.5, 4.5), layout="constrained")
    axes = figure.subplots()
    seen = shares > 0
    axes.plot(middles[seen], density[seen], "o", markersize=4, color=COLOURS[0], label="measured")
    axes.plot(middles, fitted, DASHES[1], color=COLOURS[1], label=f"power law, exponent {law.alpha:.3f}")
    axes.set(title=item.title, xlabel=f"|eigenvalue| + {item.weight_decay:g}", ylabel="density")
    axes.set(xscale="log", yscale="log")
    axes.legend(frameon=False)
    caption = (
        f"The power law ({item.title}): density against eigenvalue, both axes logarithmic, with the law of the greatest"
        f" likelihood, p(λ) ∝ λ^-{law.alpha:.3f} between {law.mu:.3g} and {law.L:.3g}. The two distribution functions"
        f" are at most {law.distance:.3f} apart."
    )
    return Picture("power_law", figure, caption)


def beside_cosine_picture(item: Measured) -> Picture:
    """One panel for each number of epochs."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    panels = figure.subplots(1, len(EPOCHS), sharey=True)
    gaps: dict[str, list[str]] = {name: [] for name in BETAS}
    for axes, epochs in zip(panels, EPOCHS, strict=True):
        total = epochs * STEPS_PER_EPOCH
        steps = np.append(np.arange(0, total, 10), total - 1)
        usual = cosine(total, LR)(steps)
        curves = {name: eigencurve(item.prepared, total, LR, 0.0, beta)(steps) for name, beta in BETAS.items()}
        axes.plot(steps / STEPS_PER_EPOCH, usual, color=COLOURS[2], label="cosine")
        for (name, rates), i in zip(curves.items(), (0, 1, 3), strict=True):
            axes.plot(steps / STEPS_PER_EPOCH, rates, DASHES[1], color=COLOURS[i], label=f"Eigencurve, {name}")
            gaps[name].append(f"{np.abs(rates - usual).max() / LR:.2f}")
        axes.set(title=f"{epochs} epochs", xlabel="epoch")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("learning rate")
    panels[0].legend(frameon=False, fontsize="small")
    found = "; ".join(f"{', '.join(numbers)} with {name}" for name, numbers in gaps.items())
    caption = (
        f"Eigencurve ({item.title}) beside cosine decay, both from {LR:g} to 0. Largest difference between the two, as"
        f" a share of the initial rate, at 50, 100 and 200 epochs: {found}. β = 1.000005, the paper's for long runs,"
        " makes nearly every node of the estimate a group of its own, so that its curve depends on how many nodes there"
        " are and where; β → 1 is the limit for the density."
    )
    return Picture("eigencurve_and_cosine", figure, caption)


def cosine_power_picture() -> Picture:
    """Three powers of cosine decay, on a linear and on a logarithmic axis."""
    total = 90 * 1_000
    steps = np.unique(np.concatenate((np.arange(0, total, 100), total - np.geomspace(1, total, 400).astype(int))))
    figure = Figure(figsize=(7, 7), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for i, power in enumerate(POWERS):
        schedule = cosine_power(total, 1.0, 0.0, power)
        for axes in (upper, lower):
            axes.plot(steps / total, schedule(steps), linestyle=DASHES[i], color=COLOURS[i], label=f"α = {power:g}")
    upper.set(ylabel="learning rate")
    lower.set(ylabel="learning rate", yscale="log", ylim=(1e-6, 1.5), xlabel="share of the steps")
    upper.legend(frameon=False)
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    caption = (
        "Cosine-power decay, η₀[½(1 + cos(πt/T))]^α, on a linear and on a logarithmic axis. With α = 0.5 the rate stays"
        " high for longer, with α = 2 it falls sooner."
    )
    return Picture("cosine_power", figure, caption)


def _log_edges(spectrum: Spectrum, count: int) -> Array:
    edges = np.geomspace(spectrum.mu, spectrum.L, count + 1)
    edges[-1] = np.nextafter(spectrum.L, np.inf)
    return np.asarray(edges)


def _shares(edges: Array, spectrum: Spectrum) -> Array:
    return np.asarray(np.histogram(spectrum.eigenvalues, edges, weights=spectrum.weights)[0])


def _bars(axes: Any, edges: Array, spectrum: Spectrum, colour: str) -> None:
    shares = _shares(edges, spectrum)
    axes.bar(edges[:-1], shares, width=np.diff(edges), align="edge", color=colour, alpha=0.8)
    axes.set_ylim(max(shares[shares > 0].min() / 2, 1e-9), 1.5)


MAKERS = {"figures": make_figures}
