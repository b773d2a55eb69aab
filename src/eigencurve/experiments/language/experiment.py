"""Language modelling under a schedule: the paper's LSTM on the Penn Treebank."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from eigencurve.experiments.data.ptb import Corpus
from eigencurve.experiments.images.experiment import threads
from eigencurve.experiments.language.task import LanguageTask
from eigencurve.experiments.models.lstm import LanguageModel, lstm
from eigencurve.experiments.models.seeding import drawn_from
from eigencurve.experiments.training.launch import own_device
from eigencurve.experiments.training.loop import Recipe, Trained, train
from eigencurve.experiments.training.schedules import make_schedule
from eigencurve.runs.store import Outcome, Run, key_of
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.classic import hold_then_decay


@dataclass(frozen=True, eq=False)
class LanguageExperiment:
    """Training runs on a text; the winner of a grid has the least perplexity on the validation text.

    Settings are the network's (``divisor`` of its width, ``dropout``, ``initial``), ``epochs``, ``batch_size``,
    ``unroll``, ``max_norm`` of the gradient, ``measured_rows``, ``evaluate_every``, and the schedule's own.

    Attributes:
        corpus: the texts.
        folder: for the checkpoints of runs under way; None keeps none.
        num_threads: of a run; results are the same bit for bit with the same number of them.
        metric: what the winner has least of.
        minimise: so it is.
    """

    corpus: Corpus
    folder: Path | None = None
    num_threads: int = 1
    metric: str = "valid"
    minimise: bool = True

    @cached_property
    def name(self) -> str:
        """``language``, the corpus's name, and a hash of its words: other texts are other runs."""
        return f"language/{self.corpus.name}/{self.corpus.digest[:12]}"

    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Every run by itself, the longest first."""
        return [[run] for run in sorted(runs, key=lambda run: -run.settings["epochs"])]

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Train; a run that was killed goes on from its checkpoint."""
        with threads(self.num_threads):
            return [self._outcome(run) for run in batch]

    def _outcome(self, run: Run) -> Outcome:
        key = key_of(self.name, run)
        path = None if self.folder is None else self.folder / f"{key}.pt"
        _, trained = train_language(self.corpus, run.settings, run.seed, key, path)
        if path is not None:
            path.unlink(missing_ok=True)
        return outcome_of(trained, run.settings["unroll"], len(self.corpus.vocabulary))


def train_language(
    corpus: Corpus, settings: Mapping[str, Any], seed: int, run: str = "", checkpoint: Path | None = None
) -> tuple[LanguageModel, Trained]:
    """Build an LSTM and train it as ``settings`` say, on a GPU where there is one; the LSTM and its history."""
    device = own_device()
    with drawn_from(seed):
        model = lstm(len(corpus.vocabulary), settings["divisor"], settings["dropout"], settings["initial"])
    task = LanguageTask(corpus, settings["batch_size"], settings["unroll"], settings["measured_rows"], device)
    schedule = schedule_of(settings, task.steps_per_epoch)
    recipe = Recipe(
        schedule, settings["epochs"], max_norm=settings["max_norm"], evaluate_every=settings["evaluate_every"]
    )
    return model, train(model.to(device), task, recipe, seed, run, checkpoint)


def schedule_of(settings: Mapping[str, Any], steps_per_epoch: int) -> Schedule:
    """The schedule that ``settings`` name; Zaremba et al.'s is counted in epochs."""
    total = settings["epochs"] * steps_per_epoch
    if settings["schedule"] != "hold_then_decay":
        return make_schedule(settings, total, {})
    hold = settings["hold_epochs"] * steps_per_epoch
    return hold_then_decay(total, settings["lr"], hold, steps_per_epoch, settings["factor"])


def outcome_of(trained: Trained, unroll: int, num_words: int) -> Outcome:
    """Perplexities, the exponential of the mean loss of a word: of the last epoch's training, and of both texts.

    A perplexity above the number of words is worse than knowing nothing; such a run counts as diverged.
    """
    curves = {
        "train": [(epoch, _perplexity(loss / unroll)) for epoch, loss in trained.history.get("train_loss", [])],
        **{
            name: [(epoch, _perplexity(loss)) for epoch, loss in trained.history.get(f"{name}_loss", [])]
            for name in ("valid", "test")
        },
    }
    last = {name: pairs[-1][1] for name, pairs in curves.items() if pairs}
    if trained.diverged or not last["valid"] <= num_words:
        return Outcome({"num_steps": float(trained.num_steps)}, diverged=True, curves=curves)
    return Outcome(last, curves=curves)


def _perplexity(loss: float) -> float:
    """Exponential of the loss; the largest number where that is beyond all numbers."""
    return math.exp(min(loss, 700.0))
