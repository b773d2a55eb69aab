"""The paper's language table: which texts and which runs it needs."""

from __future__ import annotations

from pathlib import Path

from eigencurve.experiments.data.folder import require_folder
from eigencurve.experiments.data.ptb import Corpus, load_ptb, load_small_ptb
from eigencurve.experiments.engine.request import Request
from eigencurve.experiments.engine.winners import find_winners
from eigencurve.experiments.language.experiment import LanguageExperiment
from eigencurve.experiments.language.report import REPORTED, language_page
from eigencurve.experiments.language.scales import LanguageScale, grids, scale_named
from eigencurve.experiments.page import ResultsPage


def make(request: Request) -> ResultsPage:
    """Five schedules, each with its grid, and trials of the winners."""
    scale = scale_named(request.scale)
    corpus = find_corpus(request.data, scale)
    experiment = LanguageExperiment(corpus, request.checkpoints)
    fresh = range(1, scale.num_trials + 1)
    winners = find_winners(experiment, grids(scale), scale.selection_seeds, fresh, request, REPORTED)
    return language_page(corpus, scale, winners, fresh)


def find_corpus(data: Path | None, scale: LanguageScale) -> Corpus:
    """The texts in ``data``, or in ptb/ below the data folder."""
    folder = data or require_folder(None, "ptb/ with the Penn Treebank's ptb.*.txt") / "ptb"
    return load_ptb(folder) if scale.full_text else load_small_ptb(folder, scale.least)
