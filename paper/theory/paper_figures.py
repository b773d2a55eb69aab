"""The paper's figures of spectra and schedules, which need no training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from eigencurve import Spectrum, cosine, cosine_power, eigencurve
from eigencurve.figures.style import COLOURS, DASHES
from eigencurve.spectrum import prepare
from eigencurve.spectrum.power_law import fitted_law
from eigencurve.spectrum.zoo import ZOO, zoo_spectrum
from paper.arrays import Array
from paper.data.folder import GOOGLENET_CIFAR10, RESNET_CIFAR10, RESNET_IMAGENET, data_folder, published_spectrum
from paper.engine.request import Request
from paper.page import ResultsPage

STEPS_PER_EPOCH = 391  # 50,000 images in batches of 128
EPOCHS = (50, 100, 200)
# The paper's value for long runs, which makes nearly every node of the estimate a group of its own; the limit, which
# depends on the density and not on the nodes; and the value of the theory.
BETAS = {"β = 1.000005": 1.000005, "β → 1": 1.0, "β = 2": 2.0}
LR = 0.1
POWERS = (0.5, 1.0, 2.0)
NUM_BINS = 60


@dataclass(frozen=True)
class NamedSpectrum:
    """A measured spectrum to draw."""

    title: str  # data and network
    spectrum: Spectrum  # spectrum as measured, with signed eigenvalues
    weight_decay: float  # weight decay to prepare it with

    @cached_property
    def prepared(self) -> Spectrum:
        """|λ| + weight decay."""
        return prepare(self.spectrum, self.weight_decay)


# Title and weight decay of the published spectra.
PUBLISHED = {
    RESNET_CIFAR10: ("CIFAR-10, published as ResNet-18's", 5e-4),
    GOOGLENET_CIFAR10: ("CIFAR-10, GoogLeNet", 5e-4),
    RESNET_IMAGENET: ("ImageNet, ResNet-18", 1e-4),
}


@dataclass(frozen=True)
class Picture:
    """A figure and its caption."""

    name: str
    figure: Figure
    caption: str


def make(request: Request) -> ResultsPage:
    """The page of all figures, from the published spectra if the data folder has them, else from the shipped ones."""
    source, measured = available_spectra(request.data or data_folder())
    first = measured[0]
    large = next((item for item in measured if item.title.startswith("ImageNet")), first)
    pictures = (
        illustration(),
        spectra_picture(measured),
        power_law_picture(large),
        cosine_picture(first),
        cosine_power_picture(),
    )
    parts = [source, *(f"![{p.name}](figures/{p.name}.png)\n\n{p.caption}" for p in pictures)]
    return ResultsPage(
        "figures", "The paper's figures of spectra and schedules", "\n\n".join(parts),
        {f"figures/{picture.name}.png": picture.figure for picture in pictures},
        values={"source": source, "figures": {picture.name: picture.caption for picture in pictures}},
    )  # fmt: skip


def available_spectra(folder: Path | None) -> tuple[str, list[NamedSpectrum]]:
    """The published spectra if all are in ``folder``, else those of the zoo, and a sentence that says which."""
    if folder is not None and all((folder / "spectra" / file).is_file() for file in PUBLISHED):
        found = [
            NamedSpectrum(title, published_spectrum(folder, file), decay) for file, (title, decay) in PUBLISHED.items()
        ]
        return "Drawn from the spectra that the paper's authors published.", found
    zoo = [
        NamedSpectrum(entry.network.split(",")[0], zoo_spectrum(name), entry.weight_decay)
        for name, entry in ZOO.items()
    ]
    return "Drawn from the spectra that eigencurve ships; the published ones are not in the data folder.", zoo


def illustration() -> Picture:
    """Eigencurve for four groups of eigenvalues, with its pieces marked."""
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
        "Eigencurve is a piecewise inverse time decay. For Δᵢ steps its denominator grows with the slope of one group"
        " of eigenvalues, [μβⁱ⁻¹, μβⁱ), starting with the smallest; Δᵢ is proportional to the square root of the number"
        " of eigenvalues in the group. Here four groups hold 50 %, 25 %, 15 % and 10 % of the eigenvalues. β = 8"
        " instead of the paper's 2 makes the pieces visible."
    )
    return Picture("illustration", figure, caption)


def spectra_picture(measured: list[NamedSpectrum]) -> Picture:
    """First row: raw spectra on a linear axis. Second row: prepared spectra on a logarithmic axis."""
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
        "Distributions of the Hessian's eigenvalues: the share in each of sixty bins, on a logarithmic scale. First"
        " row: raw eigenvalues on a linear axis; nearly all are in the bin at zero. Second row: after preprocessing "
        "(absolute value plus weight decay), on a logarithmic axis."
    )
    return Picture("spectra", figure, caption)


def power_law_picture(item: NamedSpectrum) -> Picture:
    """Density against eigenvalue, both axes logarithmic, with the fitted power law."""
    prepared = item.prepared
    law = fitted_law(prepared)
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
        f"The power law ({item.title}): density against eigenvalue, both axes logarithmic, and the maximum-likelihood"
        f" fit p(λ) ∝ λ^-{law.alpha:.3f} between {law.mu:.3g} and {law.L:.3g}. The two distribution functions differ by"
        f" at most {law.distance:.3f}."
    )
    return Picture("power_law", figure, caption)


def cosine_picture(item: NamedSpectrum) -> Picture:
    """Eigencurve and cosine decay, one panel per number of epochs."""
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
        f"Eigencurve ({item.title}) and cosine decay, both from {LR:g} to 0. Largest difference between the two,"
        f" relative to the initial rate, at 50, 100 and 200 epochs: {found}. β = 1.000005, the paper's choice for long"
        " runs, makes nearly every node of the estimate a group of its own, so its curve depends on the number and the"
        " position of the nodes; β → 1 is the limit for the density."
    )
    return Picture("eigencurve_and_cosine", figure, caption)


def cosine_power_picture() -> Picture:
    """Three powers of cosine decay, on a linear and a logarithmic axis."""
    total = 90 * 1_000
    steps = np.unique(np.concatenate((np.arange(0, total, 100), total - np.geomspace(1, total, 400).astype(int))))
    figure = Figure(figsize=(7, 7), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for i, power in enumerate(POWERS):
        schedule = cosine_power(total, 1.0, 0.0, power)
        for axes in (upper, lower):
            axes.plot(steps / total, schedule(steps), linestyle=DASHES[i], color=COLOURS[i], label=f"α = {power:g}")
    upper.set(ylabel="learning rate")
    lower.set(ylabel="learning rate", yscale="log", ylim=(1e-6, 1.5), xlabel="fraction of the steps")
    upper.legend(frameon=False)
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    caption = (
        "Cosine-power decay, η₀[½(1 + cos(πt/T))]^α, on a linear and a logarithmic axis. With α = 0.5 the rate stays"
        " high for longer; with α = 2 it falls sooner."
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
