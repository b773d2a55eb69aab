"""The registry: the paper's tables and figures that this project makes, what each needs, and how to make it."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from matplotlib.figure import Figure

from eigencurve import _check
from eigencurve.experiments.data.folder import data_folder
from eigencurve.experiments.data.regression import load_rows
from eigencurve.experiments.engine.protocol import Finding, search
from eigencurve.experiments.engine.request import Report as Report
from eigencurve.experiments.engine.request import Request as Request
from eigencurve.experiments.ridge.best import best_grid
from eigencurve.experiments.ridge.experiment import EPOCHS, RidgeExperiment, RidgeProblem, grids
from eigencurve.experiments.ridge.report import RidgeReport
from eigencurve.experiments.ridge.sampling import check_sampling
from eigencurve.experiments.theory import tables as theory_tables
from eigencurve.runs.store import Store

SELECTION_SEEDS = range(100, 105)
FRESH_SEEDS = range(5)


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


@dataclass(frozen=True, eq=False)
class TheoryReport:
    """A table of the theory: it needs no runs, so the store has no part in it."""

    name: str
    body: str
    figure: Figure
    seconds: float

    def text(self, command: str) -> str:
        """The page, in Markdown."""
        return f"# {theory_tables.TITLES[self.name]}\n\n{self.body}\n\nMade by `{command}`.\n"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"table": self.name, "text": self.body}

    def write(self, folder: Path, store: Store, command: str) -> Path:  # noqa: ARG002 -- as every report
        """The page and its figure, in ``folder``/theory."""
        return theory_tables.write(self.name, self.body, self.figure, folder / "theory", self.seconds)


def make_theory(name: str, request: Request) -> TheoryReport:
    """One of the theory's tables; those that need the published spectra find them under the data folder."""
    start = time.monotonic()
    body, figure = theory_tables.make(name, request.data or data_folder())
    return TheoryReport(name, body, figure, time.monotonic() - start)


def make_deep(module: str, name: str, request: Request) -> Report:
    """One of the deep-learning tables; what they need is imported only now, for the others do without PyTorch."""
    try:
        makers = importlib.import_module(f"eigencurve.experiments.{module}").MAKERS
    except ModuleNotFoundError as error:
        needs = "pip install eigencurve[experiments,torch]"
        raise ImportError(f"The table {name!r} needs {error.name}: {needs}") from error
    return cast(Report, makers[name](request))


def _deep(module: str, name: str, shows: str, needs: str) -> Entry:
    return Entry(name, shows, needs, partial(make_deep, module, name))


CIFAR_FOLDER = "cifar-10-batches-py under --data or EIGENCURVE_DATA (--download fetches it)"
IMAGENET = "ImageNet's train/ and val/ under --data or EIGENCURVE_DATA; GPUs, all of which share each run"
SPECTRA = "the published spectra, in spectra/ under EIGENCURVE_DATA or --data"
REGISTRY = {
    entry.name: entry
    for entry in (
        Entry(
            "ridge",
            'table "Ridge regression: training loss gaps" and the figure of its spectrum',
            "a4a (--download fetches it; else scikit-learn's data); paper scale, all grids: minutes on 2 cores",
            make_ridge,
        ),
        Entry(
            "extra-terms",
            "table of extra terms, with exact losses and certificates beside them",
            f"{SPECTRA}; five minutes",
            partial(make_theory, "extra-terms"),
        ),
        Entry(
            "rates",
            'table "Convergence rate of SGD with common schedulers", measured',
            "nothing; half a minute",
            partial(make_theory, "rates"),
        ),
        Entry(
            "best",
            "not in the paper: the numerically best schedule and the gap of every other to the certificate",
            f"{SPECTRA}; half a minute",
            partial(make_theory, "best"),
        ),
        Entry(
            "tightness",
            "not in the paper: how tight each of its bounds is on random problems",
            "nothing; half a minute",
            partial(make_theory, "tightness"),
        ),
        _deep(
            "images.tables",
            "cifar10",
            'table "CIFAR-10: training losses and test accuracy" and all its figures',
            f"{CIFAR_FOLDER}; GPUs for days, or --scale laptop: an hour on 2 cores",
        ),
        _deep(
            "images.tables",
            "spectra",
            "figures of the estimated eigenvalue distributions, and the spectra themselves",
            f"{CIFAR_FOLDER}; --scale laptop: half an hour on 2 cores",
        ),
        _deep(
            "images.tables",
            "spectra-unshrunk",
            "not in the paper: the spectrum of a ResNet-18 of full width",
            f"{CIFAR_FOLDER}; --scale laptop: half an hour on 2 cores",
        ),
        _deep(
            "images.tables",
            "reuse",
            "table of ResNet-18's spectrum reused for GoogLeNet and VGG16",
            f"{CIFAR_FOLDER}; --scale laptop: half an hour on 2 cores",
        ),
        _deep(
            "images.tables",
            "ema",
            'table "Exponential Moving Average"',
            f"{CIFAR_FOLDER}; --scale laptop: ten minutes on 2 cores",
        ),
        _deep(
            "images.tables",
            "elastic",
            'table "Elastic Step Decay on CIFAR-10/CIFAR-100"',
            f"{CIFAR_FOLDER}, and cifar-100-python; --scale laptop: ten minutes on 2 cores",
        ),
        _deep("images.imagenet_tables", "imagenet-elastic", 'table "Elastic Step Decay on ImageNet-1k"', IMAGENET),
        _deep("images.imagenet_tables", "imagenet-cosine-power", 'table "Cosine-power Decay on ImageNet"', IMAGENET),
        _deep(
            "language.tables",
            "language",
            "table of language modelling on the Penn Treebank with Elastic Step Decay",
            "ptb.*.txt under --data or ptb/ under EIGENCURVE_DATA; --scale laptop: half an hour on 2 cores",
        ),
        _deep(
            "theory.paper_figures",
            "figures",
            "the figures that need no training",
            "nothing; better with the published spectra",
        ),
    )
}


def entry(name: str) -> Entry:
    """The entry of that name."""
    if name not in REGISTRY:
        _check.refuse("reproduce", "name", "one of " + ", ".join(REGISTRY), name)
    return REGISTRY[name]
