"""The page of measured spectra: octaves with error bars, power laws, extra terms, and the resulting schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from eigencurve import Spectrum, cosine, eigencurve, extra_term
from eigencurve.figures.schedules import schedule_figure
from eigencurve.runs import Outcome
from eigencurve.spectrum import group, prepare
from eigencurve.spectrum.files import spectrum_bytes
from eigencurve.spectrum.power_law import fitted_law
from paper.data.folder import GOOGLENET_CIFAR10, RESNET_CIFAR10, VGG16_CIFAR10, published_spectrum
from paper.figures import spectrum_figure
from paper.images.scales import TITLES
from paper.images.spectra import spectrum_of
from paper.page import ResultsPage, markdown_table

# The published spectra, and the extra terms that the paper prints for them (table "Convergence rate of SGD").
PUBLISHED = {"resnet18": RESNET_CIFAR10, "googlenet": GOOGLENET_CIFAR10, "vgg16": VGG16_CIFAR10}
PUBLISHED_EXTRA_TERMS = {"resnet18": "8.15", "googlenet": "5.97", "vgg16": "7.12"}
COLUMNS = [
    "network", "parameters", "lr, epochs, milestones", "test accuracy (%)", "images", "products", "moved", "λ_max", "κ",
    "extra term", "paper", "power law α", "distance",
]  # fmt: skip


@dataclass(frozen=True)
class MeasuredSpectrum:
    """The spectrum of one trained network: the settings of its training and estimate, and their outcome."""

    settings: Mapping[str, Any]
    outcome: Outcome

    @property
    def title(self) -> str:
        """The network and the divisor of its widths."""
        name, divisor = TITLES[self.settings["model"]], self.settings["divisor"]
        return name if divisor == 1 else f"{name}, widths divided by {divisor}"

    @property
    def file(self) -> str:
        """The file name of the spectrum, without a suffix."""
        divisor = self.settings["divisor"]
        return f"{self.settings['model']}_cifar10" + ("" if divisor == 1 else f"_narrow{divisor}")

    @cached_property
    def spectrum(self) -> Spectrum:
        """The spectrum with signed eigenvalues."""
        return spectrum_of(self.outcome)

    @cached_property
    def prepared(self) -> Spectrum:
        """The spectrum of |λ| + weight decay."""
        return prepare(self.spectrum, self.settings["weight_decay"])


def spectra_page(name: str, about: str, measured: Sequence[MeasuredSpectrum], data: Path | None) -> ResultsPage:
    """The page of measured spectra, with figures and .npz files; ``data`` may hold the published spectra."""
    finished = [m for m in measured if not m.outcome.diverged]
    parts = [about, markdown_table(COLUMNS, map(_overview_row, measured)), *_remarks(finished)]
    figures, files = {}, {}
    for m in finished:
        parts += [f"## {m.title}", _octaves(m, data), f"![spectrum]({name}_{m.file}.png)"]
        figures[f"{name}_{m.file}.png"] = spectrum_figure(m.prepared, m.title)
        files[f"{name}_{m.file}.npz"] = spectrum_bytes(m.spectrum, ".npz")
    steps = measured[0].settings["schedule_steps"]
    curves = {m.title: eigencurve(m.prepared, steps, lr=1.0) for m in finished}
    title = f"Eigencurve, β = 2, T = {steps:,}"
    figures[f"{name}_schedules.png"] = schedule_figure({**curves, "Cosine": cosine(steps, lr=1.0)}, title)
    parts += ["## The resulting schedules", f"![schedules]({name}_schedules.png)"]
    spectra = [
        {"network": m.title, "settings": dict(m.settings), **m.outcome.metrics, "diverged": m.outcome.diverged}
        for m in measured
    ]
    heading = "Spectra of trained networks on CIFAR-10"
    return ResultsPage(name, heading, "\n\n".join(parts), figures, files, {"spectra": spectra})


def _overview_row(m: MeasuredSpectrum) -> list[str]:
    s, metrics = m.settings, m.outcome.metrics
    if m.outcome.diverged:
        return [m.title, "training diverged", *["–"] * (len(COLUMNS) - 2)]
    law = fitted_law(m.prepared)
    error = "" if law.alpha_error is None else f" ± {law.alpha_error:.2g}"
    return [
        m.title, f"{metrics['dim']:,.0f}", f"{s['lr']:g}, {s['epochs']}, {s['milestones']}",
        f"{metrics['accuracy']:.1f}", f"{s['num_images']}",
        f"{metrics['num_products']:.0f}{' (settled)' if metrics['settled'] else ''}",
        "–" if metrics["moved"] > 1e6 else f"{metrics['moved']:.1%}", f"{m.prepared.L - s['weight_decay']:.3g}",
        f"{m.prepared.kappa:.3g}", f"{extra_term(m.prepared):.2f}", PUBLISHED_EXTRA_TERMS[s["model"]],
        f"{law.alpha:.2f}{error}", f"{law.distance or 0.0:.2f}",
    ]  # fmt: skip


def _remarks(finished: Sequence[MeasuredSpectrum]) -> list[str]:
    near = [m.prepared.weights[m.prepared.eigenvalues < 100 * m.prepared.mu].sum() for m in finished]
    ends = list(dict.fromkeys(f"{share:.1%}" for share in (min(near), max(near)))) if near else []
    skewed = f"{' to '.join(ends)} of the eigenvalues are" if near else "no eigenvalue is"
    return [
        "'Moved' is the change of the schedule over the last quarter of the products, as the largest |ln f'/f|. The"
        " paper's extra terms are for its own trained networks with widths divided by 16, 4 and 8. 'Distance' is the"
        " Kolmogorov distance between the spectrum and the fitted power law.",
        f"Skewness: {skewed} within a factor of 100 of the smallest, μ.",
    ]


def _octaves(m: MeasuredSpectrum, data: Path | None) -> str:
    shares, errors = (dict(m.outcome.curves[name]) for name in ("octaves", "octave_errors"))
    theirs = _published_shares(m, data)
    rows = [
        [
            f"{i:.0f}",
            f"{m.prepared.mu * 2**i:.3g}",
            *(_share_text(some.get(i)) for some in (shares, errors, theirs)),
        ]
        for i in sorted({*shares, *theirs})
    ]
    return markdown_table(["octave i", "from", "share", "standard error", "published"], rows)


def _published_shares(m: MeasuredSpectrum, data: Path | None) -> dict[float, float]:
    """The octave shares of the spectrum that the paper's authors published for this network; empty if missing."""
    file = PUBLISHED[m.settings["model"]]
    if data is None or not (data / "spectra" / file).is_file():
        return {}
    groups = group(prepare(published_spectrum(data, file), m.settings["weight_decay"]))
    return dict(zip(np.asarray(groups.index, float).tolist(), groups.share.tolist(), strict=True))


def _share_text(number: float | None) -> str:
    return "–" if number is None else f"{number:.2e}"
