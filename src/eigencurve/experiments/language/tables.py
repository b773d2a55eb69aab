"""The paper's language table: which texts, which runs, in which order."""

from __future__ import annotations

from pathlib import Path

from eigencurve import _check
from eigencurve.experiments.data.folder import VARIABLE, data_folder
from eigencurve.experiments.data.ptb import Corpus, load_ptb, load_small_ptb
from eigencurve.experiments.engine.protocol import search
from eigencurve.experiments.engine.request import Request
from eigencurve.experiments.language.experiment import LanguageExperiment
from eigencurve.experiments.language.report import SHOWN, LanguageReport
from eigencurve.experiments.language.scales import LanguageScale, grids, scale_named


def make_language(request: Request) -> LanguageReport:
    """Five schedules, each with its grid, and trials of the winners."""
    scale = scale_named(request.scale)
    corpus = find_corpus(request.data, scale)
    checkpoints = request.store.path.with_suffix(".checkpoints")
    checkpoints.mkdir(parents=True, exist_ok=True)
    experiment = LanguageExperiment(corpus, checkpoints)
    every, fresh = grids(scale), range(1, scale.num_trials + 1)
    found = search(experiment, every, scale.selection_seeds, fresh, request.store, request.workers, request.progress)
    rows = SHOWN.rows(experiment, found, {name: len(grid) for name, grid in every.items()}, fresh, request.store)
    return LanguageReport(corpus, scale, rows, fresh)


def find_corpus(folder: Path | None, scale: LanguageScale) -> Corpus:
    """The texts in ``folder``, or in ptb/ under the data folder."""
    named = data_folder()
    where = folder or (named / "ptb" if named is not None else None)
    if where is None:
        remedy = f"Or set {VARIABLE} to the folder that holds ptb/."
        _check.refuse("reproduce", "data", "the folder of the Penn Treebank's texts, ptb.*.txt", None, remedy)
    return load_ptb(where) if scale.full_text else load_small_ptb(where, scale.least)


MAKERS = {"language": make_language}
