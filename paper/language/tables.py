"""The paper's language table: which texts and which runs it needs."""

from __future__ import annotations

from pathlib import Path

from paper.data.folder import require_folder
from paper.data.ptb import Corpus, load_ptb, load_small_ptb
from paper.engine.request import Request
from paper.engine.winners import find_winners
from paper.language.experiment import language_experiment
from paper.language.report import REPORTED, language_page
from paper.language.scales import LanguageScale, grids, scale_named
from paper.page import ResultsPage


def make(request: Request) -> ResultsPage:
    """Five schedules, each with its grid, and trials of the winners."""
    scale = scale_named(request.scale)
    corpus = find_corpus(request.data, scale)
    experiment = language_experiment(corpus, request.checkpoints)
    fresh = range(1, scale.num_trials + 1)
    winners = find_winners(experiment, grids(scale), scale.selection_seeds, fresh, request, REPORTED)
    return language_page(corpus, scale, winners, fresh)


def find_corpus(data: Path | None, scale: LanguageScale) -> Corpus:
    """The texts in ``data``, or in ptb/ below the data folder."""
    folder = data or require_folder(None, "ptb/ with the Penn Treebank's ptb.*.txt") / "ptb"
    return load_ptb(folder) if scale.full_text else load_small_ptb(folder, scale.least)
