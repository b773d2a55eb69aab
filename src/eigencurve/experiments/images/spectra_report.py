"""The page of measured spectra: octaves with error bars, power laws, extra terms, schedules and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from eigencurve._files import write_atomically
from eigencurve.experiments.images.experiment import ImageData
from eigencurve.experiments.images.scales import TITLES
from eigencurve.experiments.images.spectra import spectrum_of
from eigencurve.experiments.page import made_by, save_figure
from eigencurve.figures.rates import schedule_figure
from eigencurve.figures.spectra import spectrum_figure
from eigencurve.runs.store import Outcome, Store
from eigencurve.schedules.classic import cosine
from eigencurve.schedules.eigencurve import eigencurve
from eigencurve.spectrum.files import load_spectrum, save_spectrum
from eigencurve.spectrum.groups import extra_term, group
from eigencurve.spectrum.power_law import fit_power_law
from eigencurve.spectrum.spectrum import Spectrum, prepare

# The published spectra, and the extra terms that the paper prints for them (table "Convergence rate of SGD").
PUBLISHED = {"resnet18": "resnet-18_cifar10.txt", "googlenet": "googlenet_cifar10.txt", "vgg16": "vgg16_cifar10.txt"}
PAPER_EXTRA = {"resnet18": "8.15", "googlenet": "5.97", "vgg16": "7.12"}


@dataclass(frozen=True)
class Measured:
    """One network's spectrum: the settings of its training and estimate, and what they gave."""

    settings: Mapping[str, Any]
    outcome: Outcome

    @property
    def title(self) -> str:
        """The network and the divisor of its widths."""
        name, divisor = TITLES[self.settings["model"]], self.settings["divisor"]
        return name if divisor == 1 else f"{name}, widths divided by {divisor}"

    @property
    def file(self) -> str:
        """The name of its files."""
        divisor = self.settings["divisor"]
        return f"{self.settings['model']}_cifar10" + ("" if divisor == 1 else f"_narrow{divisor}")

    @cached_property
    def spectrum(self) -> Spectrum:
        """As measured, signed."""
        return spectrum_of(self.outcome)

    @cached_property
    def prepared(self) -> Spectrum:
        """|λ| + weight decay."""
        return prepare(self.spectrum, self.settings["weight_decay"])


@dataclass(frozen=True, eq=False)
class SpectraReport:
    """What was measured; ``published`` is the folder above spectra/, where the paper's own are at hand.

    ``caveat`` says what to know of the images.
    """

    name: str
    data: ImageData
    scale: str
    measured: Sequence[Measured]
    published: Path | None
    caveat: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {
            "table": self.name,
            "spectra": [
                {"network": m.title, "settings": dict(m.settings), **m.outcome.metrics, "diverged": m.outcome.diverged}
                for m in self.measured
            ],
        }

    def text(self, command: str) -> str:
        """The page, in Markdown."""
        lines = [
            "# Spectra of trained networks on CIFAR-10", "",
            f"Scale: {self.scale}. Trained on {len(self.data.train):,} images with momentum 0.9, the rate divided"
            " by 10 at the milestones; then the Hessian of the mean loss on the first images, in eval mode, by"
            f" stochastic Lanczos quadrature, sharpened. Eigenvalues are |λ| + weight decay.{self.caveat}", "",
            *self._overview(), "", *self._remarks(), "",
        ]  # fmt: skip
        for measured in self._finished():
            lines += [f"## {measured.title}", "", *self._octaves(measured), ""]
            lines += [f"![spectrum]({self.name}_{measured.file}.png)", ""]
        lines += ["## The schedules that they call for", "", f"![schedules]({self.name}_schedules.png)", ""]
        return "\n".join([*lines, made_by(command), ""])

    def write(self, folder: Path, store: Store, command: str) -> Path:  # noqa: ARG002 -- as every report
        """The page, its figures, and every spectrum as .npz."""
        folder.mkdir(parents=True, exist_ok=True)
        for measured in self._finished():
            save_spectrum(measured.spectrum, folder / f"{self.name}_{measured.file}.npz")
            save_figure(spectrum_figure(measured.prepared, measured.title), folder / f"{self.name}_{measured.file}.png")
        curves = {m.title: eigencurve(m.prepared, m.settings["schedule_steps"], lr=1.0) for m in self._finished()}
        steps = self.measured[0].settings["schedule_steps"]
        figure = schedule_figure({**curves, "Cosine": cosine(steps, lr=1.0)}, f"Eigencurve, β = 2, T = {steps:,}")
        save_figure(figure, folder / f"{self.name}_schedules.png")
        write_atomically(folder / f"{self.name}.md", self.text(command).encode())
        return folder / f"{self.name}.md"

    def _finished(self) -> list[Measured]:
        return [measured for measured in self.measured if not measured.outcome.diverged]

    def _overview(self) -> list[str]:
        head = (
            "| network | parameters | lr, epochs, milestones | test accuracy (%) | images | products | moved | λ_max |"
            " κ | extra term | the paper's | power law α | distance |"
        )
        return [head, "|" + " --- |" * 13, *(self._row(measured) for measured in self.measured)]

    def _row(self, m: Measured) -> str:
        s, found = m.settings, m.outcome.metrics
        if m.outcome.diverged:
            return f"| {m.title} | training diverged |" + " – |" * 11
        law = fit_power_law(m.prepared)
        error = "" if law.alpha_error is None else f" ± {law.alpha_error:.2g}"
        moved = "–" if found["moved"] > 1e6 else f"{found['moved']:.1%}"
        extra = f"{extra_term(m.prepared):.2f} | {PAPER_EXTRA[s['model']]}"
        return (
            f"| {m.title} | {found['dim']:,.0f} | {s['lr']:g}, {s['epochs']}, {s['milestones']} |"
            f" {found['accuracy']:.1f} |"
            f" {s['num_images']} | {found['num_products']:.0f}{' (settled)' if found['settled'] else ''} | {moved} |"
            f" {m.prepared.L - s['weight_decay']:.3g} | {m.prepared.kappa:.3g} | {extra} |"
            f" {law.alpha:.2f}{error} | {law.distance or 0.0:.2f} |"
        )

    def _remarks(self) -> list[str]:
        near = [m.prepared.weights[m.prepared.eigenvalues < 100 * m.prepared.mu].sum() for m in self._finished()]
        ends = list(dict.fromkeys(f"{share:.1%}" for share in (min(near), max(near)))) if near else []
        skewed = f"{' to '.join(ends)} of the eigenvalues are" if near else "no eigenvalue is"
        return [
            "'Moved' is how far the schedule still moved over the last quarter of the products, as the largest"
            " |ln f'/f|. The paper's extra terms are for its own trained networks at C = 16, 4 and 8. 'Distance' is"
            " Kolmogorov's between the spectrum and the fitted power law.",
            "",
            f"Skewness: {skewed} within a factor of 100 of the smallest, μ.",
        ]

    def _octaves(self, m: Measured) -> list[str]:
        shares, errors = (dict(m.outcome.curves[name]) for name in ("octaves", "octave_errors"))
        theirs = self._published_shares(m)
        mu = m.prepared.mu
        known = (shares, errors, theirs)
        rows = [
            f"| {i:.0f} | {mu * 2**i:.3g} | {' | '.join(_shown(numbers.get(i)) for numbers in known)} |"
            for i in sorted({*shares, *theirs})
        ]
        return ["| octave i | from | share | standard error | published |", "| --- | --- | --- | --- | --- |", *rows]

    def _published_shares(self, m: Measured) -> dict[float, float]:
        """The shares of the spectrum that the paper's authors published for this network, where it is at hand."""
        path = None if self.published is None else self.published / "spectra" / PUBLISHED[m.settings["model"]]
        if path is None or not path.exists():
            return {}
        groups = group(prepare(load_spectrum(path), m.settings["weight_decay"]))
        return dict(zip(np.asarray(groups.index, float).tolist(), groups.share.tolist(), strict=True))


def _shown(number: float | None) -> str:
    return "–" if number is None else f"{number:.2e}"
