"""The page of the ridge regression experiment: which runs it needs, its tables and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eigencurve.runs import Store
from paper.data.rows import load_rows
from paper.engine.claims import best_sentence
from paper.engine.protocol import Finding, Trials, search, stored_outcomes
from paper.engine.request import Request
from paper.engine.winners import settings_text
from paper.figures import curves_figure, spectrum_figure
from paper.page import ResultsPage, epochs_text, markdown_table, published_numbers
from paper.ridge.experiment import EPOCHS, RidgeExperiment, RidgeProblem, grids
from paper.ridge.theory import SamplingCheck, best_grid, check_sampling

SELECTION_SEEDS = range(100, 105)
FRESH_SEEDS = range(5)
# Training loss gaps that the paper prints, by schedule, for these numbers of epochs.
PUBLISHED_EPOCHS = (1, 5, 25, 250)
PUBLISHED_GAPS = published_numbers("ridge")
Findings = Mapping[int, Sequence[Finding]]


def make(request: Request) -> ResultsPage:
    """The ridge regression tables at each budget, on a4a or the data given."""
    name, rows = load_rows(request.data, request.download)
    experiment = RidgeExperiment(RidgeProblem(rows), name)
    budgets = request.budgets(EPOCHS)
    findings = {epochs: _search(experiment, epochs, request) for epochs in budgets}
    checks = [check_sampling(experiment, e, FRESH_SEEDS, request.store, request.workers) for e in budgets]
    figures = {
        "ridge_spectrum.png": spectrum_figure(experiment.problem.spectrum, f"Hessian of ridge regression on {name}"),
        "ridge_curves.png": curves_figure(_curves(experiment, findings, request.store), "epoch", "f(w) - f(w*)"),
    }
    body = _text(experiment, findings, [check for check in checks if check])
    return ResultsPage("ridge", f"Ridge regression on {name}", body, figures, values=_values(experiment, findings))


def _search(experiment: RidgeExperiment, epochs: int, request: Request) -> list[Finding]:
    best = best_grid(experiment, epochs, request.store, request.workers, request.progress)
    every = grids(epochs) | ({"Numerically best": best} if best else {})
    return search(experiment, every, SELECTION_SEEDS, FRESH_SEEDS, request.store, request.workers, request.progress)


def _text(experiment: RidgeExperiment, findings: Findings, checks: Sequence[SamplingCheck]) -> str:
    problem, spectrum = experiment.problem, experiment.problem.spectrum
    parts = [
        f"f(w) = ‖Xw - Y‖²/n + α‖w‖² with α = {problem.alpha:g}, n = {len(problem.rows):,} rows and"
        f" d = {len(spectrum)} features. SGD without momentum, batch size 1, rows reshuffled every epoch. The tables"
        " show f(w_T) - f(w_*), mean ± standard deviation.",
        f"The winner of each grid is chosen by its mean over seeds {_span(SELECTION_SEEDS)}. 'Fresh seeds' are trials"
        f" of the winner on seeds {_span(FRESH_SEEDS)}; 'chosen as in the paper' reports the seeds that it was chosen"
        " on. A star means that at least one trial diverged; diverged trials are counted but not averaged.",
        f"Exact spectrum: μ = {spectrum.mu:.4g}, L = {spectrum.L:.4g}, κ = {spectrum.kappa:.4g}.",
    ]
    for epochs, found in findings.items():
        trials = {f.schedule: f.fresh for f in found}
        best = best_sentence("on fresh seeds", trials, minimise=True, number=_number)
        parts += [f"## {epochs_text(epochs)}", _table(experiment, epochs, found), best]
    parts += _sampling(checks)
    return "\n\n".join([*parts, "## Figures", "![spectrum](ridge_spectrum.png)", "![curves](ridge_curves.png)"])


def _table(experiment: RidgeExperiment, epochs: int, found: Sequence[Finding]) -> str:
    columns = ["schedule", "fresh seeds", "chosen as in the paper", "paper", "winner of the grid"]
    rows = []
    for f in found:
        known = experiment.data_name == "a4a" and f.schedule in PUBLISHED_GAPS and epochs in PUBLISHED_EPOCHS
        published = PUBLISHED_GAPS[f.schedule][PUBLISHED_EPOCHS.index(epochs)] if known else "–"
        winner = settings_text(f.fresh.settings)
        rows.append([f.schedule, _number(f.fresh), _number(f.chosen_on), published, winner])
    return markdown_table(columns, rows)


def _sampling(checks: Sequence[SamplingCheck]) -> list[str]:
    about = (
        "The theory assumes that the noise of each step is independent of all others. Rows that are reshuffled every"
        " epoch violate this: over an epoch their noise cancels. The table shows Eigencurve (β = 2, last rate free):"
        " its mean gap over the fresh seeds with reshuffled rows and with rows drawn independently, the expected gap"
        " with independent rows by the exact recursion, and the certificate, below which no schedule with rates up to"
        " 0.06 can get in expectation with independent rows."
    )
    columns = ["epochs", "lr", "reshuffled", "independent", "expected", "certificate"]
    rows = [
        [f"{check.epochs}", f"{lr:g}", *(f"{gap:.6f}" for gap in gaps), f"{check.certificate:.6f}"]
        for check in checks
        for lr, gaps in check.gaps.items()
    ]
    return ["## Reshuffled and independent rows", about, markdown_table(columns, rows)]


def _values(experiment: RidgeExperiment, findings: Findings) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "selection_seeds": list(SELECTION_SEEDS),
        "fresh_seeds": list(FRESH_SEEDS),
        "tables": {
            str(epochs): [
                {
                    "schedule": f.schedule, "settings": dict(f.fresh.settings), "fresh": list(f.fresh.values),
                    "fresh_diverged": f.fresh.num_diverged, "chosen_on": list(f.chosen_on.values),
                    "chosen_on_diverged": f.chosen_on.num_diverged,
                }
                for f in found
            ]
            for epochs, found in findings.items()
        },
    }  # fmt: skip


def _curves(experiment: RidgeExperiment, findings: Findings, store: Store) -> dict[str, dict[str, tuple[Any, Any]]]:
    """The mean gap of the fresh trials over time, by budget and schedule."""
    panels: dict[str, dict[str, tuple[Any, Any]]] = {}
    for epochs, found in findings.items():
        panel = panels.setdefault(epochs_text(epochs), {})
        for f in found:
            outcomes = stored_outcomes(experiment, f.fresh.settings, FRESH_SEEDS, store).values()
            kept = [np.array(outcome.curve) for outcome in outcomes if not outcome.diverged]
            if kept:
                panel[f.schedule] = kept[0][:, 0], np.mean([curve[:, 1] for curve in kept], axis=0)
    return panels


def _number(trials: Trials) -> str:
    """Six digits as in the paper, or three significant ones if those would be zeros."""
    if trials.mean is None or trials.mean >= 1e-5:
        return trials.text(6)
    return f"{'*' if trials.num_diverged else ''}{trials.mean:.2e} ± {trials.deviation:.1e}"


def _span(seeds: Sequence[int]) -> str:
    return f"{min(seeds)} … {max(seeds)}"
