"""The tables and figures of the ridge experiment, made from the rows of a store and from nothing else."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eigencurve._files import write_atomically
from eigencurve.experiments.engine.protocol import Finding, Trials
from eigencurve.experiments.ridge.experiment import RidgeExperiment
from eigencurve.experiments.ridge.sampling import SamplingCheck
from eigencurve.figures.curves import curves_figure
from eigencurve.figures.spectra import spectrum_figure
from eigencurve.runs.origin import origin_here
from eigencurve.runs.store import Run, Store

# arXiv:2110.14109, Table "Ridge regression": training loss gaps over 5 trials, by epochs.
PAPER_EPOCHS = (1, 5, 25, 250)
PAPER = {
    "Constant": ("0.014963 ± 0.001369", "0.004787 ± 0.000175", "0.001351 ± 0.000179", "0.000122 ± 0.000009"),
    "Inverse Time Decay": ("0.007284 ± 0.000190", "0.002098 ± 0.000160", "0.000637 ± 0.000143", "0.000011 ± 0.000001"),
    "Exponential Decay": ("0.008351 ± 0.000360", "0.000931 ± 0.000100", "0.000048 ± 0.000007", "0.000000 ± 0.000000"),
    "Cosine Decay": ("0.007767 ± 0.000006", "0.001167 ± 0.000142", "0.000054 ± 0.000005", "0.000000 ± 0.000000"),
    "Eigencurve, β = 2": ("0.006977 ± 0.000197", "0.000676 ± 0.000069", "0.000045 ± 0.000008", "0.000000 ± 0.000000"),
}


@dataclass(frozen=True)
class RidgeReport:
    """What a search found, by number of epochs."""

    experiment: RidgeExperiment
    findings: Mapping[int, Sequence[Finding]]
    selection_seeds: Sequence[int]
    fresh_seeds: Sequence[int]
    sampling: Sequence[SamplingCheck] = ()

    def table(self, epochs: int) -> list[str]:
        """Rows of a Markdown table: fresh seeds, the paper's way of choosing, the paper's numbers, the winner."""
        rows = [
            f"| {f.schedule} | {_number(f.fresh)} | {_number(f.chosen_on)} | {self._published(f.schedule, epochs)} |"
            f" {_winner(f)} |"
            for f in self.findings[epochs]
        ]
        head = "| schedule | fresh seeds | chosen as in the paper | the paper's | winner |"
        return [head, "| --- | --- | --- | --- | --- |", *rows]

    def _published(self, schedule: str, epochs: int) -> str:
        if self.experiment.data_name != "a4a" or schedule not in PAPER or epochs not in PAPER_EPOCHS:
            return "–"
        return PAPER[schedule][PAPER_EPOCHS.index(epochs)]

    def claims(self, epochs: int) -> list[str]:
        """What the fresh trials say: the best schedule, and how far each other one is behind it."""
        ranked = sorted(
            (f for f in self.findings[epochs] if f.fresh.mean is not None), key=lambda f: f.fresh.mean or 0.0
        )
        best = ranked[0].fresh
        lines = [f"Best on fresh seeds: {ranked[0].schedule}, {_number(best)}."]
        close = [f.schedule for f in ranked[1:] if _separation(best, f.fresh) < 2]
        if close:
            lines.append(f"Within two standard errors of it: {', '.join(close)}.")
        return lines

    def sampling_section(self) -> list[str]:
        """What the theory's assumption of independent samples has to do with these numbers."""
        return [
            "## Reshuffled rows and independent ones",
            "",
            "The theory takes the noise of each step to be independent of all others. Rows that are reshuffled every"
            " epoch are not: over an epoch their noise cancels. Eigencurve (β = 2, last rate free), mean gap over the"
            " fresh seeds with reshuffled rows and with a row drawn anew at each step; what the exact recursion expects"
            " of independent rows; and the certificate, below which no schedule with rates up to 0.06 can be expected"
            " to come with independent rows.",
            "",
            "| epochs | lr | reshuffled | drawn anew | expected | certificate |",
            "| --- | --- | --- | --- | --- | --- |",
            *(line for check in self.sampling for line in check.table()),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {
            "experiment": self.experiment.name,
            "selection_seeds": list(self.selection_seeds),
            "fresh_seeds": list(self.fresh_seeds),
            "tables": {
                str(epochs): [
                    {
                        "schedule": f.schedule, "settings": dict(f.fresh.settings), "fresh": list(f.fresh.values),
                        "fresh_diverged": f.fresh.num_diverged, "chosen_on": list(f.chosen_on.values),
                        "chosen_on_diverged": f.chosen_on.num_diverged,
                    }
                    for f in findings
                ]
                for epochs, findings in self.findings.items()
            },
        }  # fmt: skip

    def text(self, command: str) -> str:
        """The whole page, in Markdown."""
        origin, problem, spectrum = origin_here(), self.experiment.problem, self.experiment.problem.spectrum
        lines = [
            f"# Ridge regression on {self.experiment.data_name}",
            "",
            f"f(w) = ‖Xw - Y‖²/n + α‖w‖² with α = {problem.alpha:g}, n = {len(problem.rows):,} rows and"
            f" d = {len(spectrum)} features; SGD without momentum, batch size 1, reshuffled every epoch."
            " The numbers are f(w_T) - f(w_*), mean ± standard deviation.",
            "",
            f"Winners of each grid are chosen by the mean over seeds {_span(self.selection_seeds)}. 'Fresh seeds' are"
            f" trials of the winner on seeds {_span(self.fresh_seeds)}; 'chosen as in the paper' reports the seeds that"
            " it was chosen on. A star marks trials of which at least one diverged; diverged runs are counted and not"
            " averaged.",
            "",
            f"Exact spectrum: μ = {spectrum.mu:.4g}, L = {spectrum.L:.4g}, κ = {spectrum.kappa:.4g}.",
        ]
        for epochs in self.findings:
            lines += [
                "",
                f"## {_epochs(epochs)}",
                "",
                *self.table(epochs),
                "",
                *self.claims(epochs),
            ]
        lines += ["", *self.sampling_section()]
        versions = ", ".join(f"{name} {number}" for name, number in origin.versions.items())
        lines += ["", "## Figures", "", "![spectrum](ridge_spectrum.png)", "", "![curves](ridge_curves.png)", ""]
        return "\n".join([*lines, f"Made by `{command}`; {versions}; revision {origin.revision or 'unknown'}.", ""])

    def write(self, folder: Path, store: Store, command: str) -> Path:
        """``ridge.md`` and its two figures, each in one step."""
        folder.mkdir(parents=True, exist_ok=True)
        problem = self.experiment.problem
        title = f"Hessian of ridge regression on {self.experiment.data_name}"
        _save(spectrum_figure(problem.spectrum, title), folder / "ridge_spectrum.png")
        _save(curves_figure(self._curves(store), "epoch", "f(w) - f(w*)"), folder / "ridge_curves.png")
        write_atomically(folder / "ridge.md", self.text(command).encode())
        return folder / "ridge.md"

    def _curves(self, store: Store) -> dict[str, dict[str, tuple[Any, Any]]]:
        """By number of epochs and schedule: the mean gap of the fresh trials over time."""
        panels: dict[str, dict[str, tuple[Any, Any]]] = {}
        for epochs, findings in self.findings.items():
            panel = panels.setdefault(_epochs(epochs), {})
            for f in findings:
                runs = [Run(f.fresh.settings, seed) for seed in self.fresh_seeds]
                found = [o for o in store.outcomes(self.experiment.name, runs) if o is not None and not o.diverged]
                if found:
                    times = [t for t, _ in found[0].curve]
                    gaps = np.mean([[gap for _, gap in o.curve] for o in found], axis=0)
                    panel[f.schedule] = (times, gaps)
        return panels


def _separation(best: Trials, other: Trials) -> float:
    """Difference of two means in units of its standard error."""
    spread = math.sqrt(best.deviation**2 / max(len(best.values), 1) + other.deviation**2 / max(len(other.values), 1))
    gap = (other.mean or 0.0) - (best.mean or 0.0)
    return gap / spread if spread > 0 else math.inf


def _number(trials: Trials) -> str:
    """Six digits as in the paper, or three significant ones where that would be all zeros."""
    if trials.mean is None or trials.mean >= 1e-5:
        return trials.text(6)
    return f"{'*' if trials.num_diverged else ''}{trials.mean:.2e} ± {trials.deviation:.1e}"


def _winner(finding: Finding) -> str:
    settings = finding.fresh.settings
    shown = [f"lr {settings['lr']:g}"]
    if "min_lr" in settings:
        shown.append("last rate free" if settings["min_lr"] is None else f"last {settings['min_lr']:g}")
    return ", ".join(shown + ([f"r {settings['r']:.3g}"] if "r" in settings else []))


def _epochs(count: int) -> str:
    return f"{count} epoch" + ("s" if count > 1 else "")


def _span(seeds: Sequence[int]) -> str:
    return f"{min(seeds)} … {max(seeds)}"


def _save(figure: Any, path: Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    write_atomically(path, buffer.getvalue())
