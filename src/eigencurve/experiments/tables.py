"""The registry: the paper's tables and figures that this project makes, what each needs, and how to make it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from eigencurve import _check
from eigencurve.experiments.data.regression import load_rows
from eigencurve.experiments.protocol import Finding, search
from eigencurve.experiments.ridge import EPOCHS, RidgeExperiment, RidgeProblem, grids
from eigencurve.experiments.ridge_best import best_grid
from eigencurve.experiments.ridge_report import RidgeReport
from eigencurve.experiments.ridge_sampling import check_sampling
from eigencurve.experiments.store import Store
from eigencurve.experiments.workers import Workers

SELECTION_SEEDS = range(100, 105)
FRESH_SEEDS = range(5)


class Report(Protocol):
    """What an entry gives back: a page to write and values to print."""

    def text(self, command: str) -> str:
        """The page, in Markdown."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""

    def write(self, folder: Path, store: Store, command: str) -> Path:
        """Write the page and its figures."""


@dataclass(frozen=True)
class Request:
    """What a user may say about how a table is made.

    Attributes:
        store: where finished runs are kept.
        workers: who runs.
        data: a file to use in place of the paper's.
        download: whether the paper's data may be fetched.
        epochs: budgets to run; empty for the paper's.
        progress: whether to draw a progress bar.
    """

    store: Store
    workers: Workers = field(default_factory=Workers)
    data: Path | None = None
    download: bool = False
    epochs: Sequence[int] = ()
    progress: bool = False


@dataclass(frozen=True)
class Entry:
    """A table or figure of the paper.

    Attributes:
        name: of the command that makes it.
        shows: what it is in the paper.
        needs: data and time.
        make: does it.
    """

    name: str
    shows: str
    needs: str
    make: Callable[[Request], Report]


def make_ridge(request: Request) -> RidgeReport:
    """The ridge regression table at each budget, on a4a or the data given."""
    name, rows = load_rows(request.data, request.download)
    experiment = RidgeExperiment(RidgeProblem(rows), name)
    budgets = [_check.whole("ridge", "epochs", e, minimum=1) for e in request.epochs] or EPOCHS
    found = {epochs: _search_ridge(experiment, epochs, request) for epochs in budgets}
    checks = [check_sampling(experiment, e, FRESH_SEEDS, request.store, request.workers) for e in budgets]
    return RidgeReport(experiment, found, SELECTION_SEEDS, FRESH_SEEDS, [check for check in checks if check])


def _search_ridge(experiment: RidgeExperiment, epochs: int, request: Request) -> list[Finding]:
    best = best_grid(experiment, epochs, request.store, request.workers, request.progress)
    every = grids(epochs) | ({"Numerically best": best} if best else {})
    seeds = (SELECTION_SEEDS, FRESH_SEEDS)
    return search(experiment, every, *seeds, request.store, request.workers, request.progress)


REGISTRY = {
    entry.name: entry
    for entry in (
        Entry(
            "ridge",
            'table "Ridge regression: training loss gaps" and the figure of its spectrum',
            "a4a (--download fetches it; else scikit-learn's data); paper scale, all grids: minutes on 2 cores",
            make_ridge,
        ),
    )
}


def entry(name: str) -> Entry:
    """The entry of that name."""
    if name not in REGISTRY:
        _check.refuse("reproduce", "name", "one of " + ", ".join(REGISTRY), name)
    return REGISTRY[name]
