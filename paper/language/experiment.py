"""Language modelling under a schedule: the paper's LSTM on the Penn Treebank."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from eigencurve import Schedule, hold_then_decay
from eigencurve.runs import Outcome, Run, key_of
from paper.data.ptb import Corpus
from paper.engine.protocol import one_by_one
from paper.language.task import LanguageTask
from paper.models.lstm import LanguageModel, lstm
from paper.models.seeding import drawn_from
from paper.training.checkpoint import checkpoint_for
from paper.training.devices import own_device, threads
from paper.training.loop import Trained, train
from paper.training.schedules import make_schedule
from paper.training.settings import TrainingSettings


@dataclass(frozen=True, eq=False)
class LanguageExperiment:
    """Training runs on a text; settings are chosen by the perplexity on the validation text.

    The settings of a run are the network's (``divisor`` of its width, ``dropout``, ``initial``), ``epochs``,
    ``batch_size``, ``unroll``, ``max_norm`` of the gradient, ``measured_rows``, ``evaluate_every``, and the schedule's
    own.

    Attributes:
        corpus: Texts to train and measure on.
        folder: Folder for checkpoints of unfinished runs; None keeps none.
        num_threads: Number of threads per run. Results are bit-identical for the same number of threads.
        metric: Metric by which settings are chosen.
        minimise: Whether smaller is better; True here.
    """

    corpus: Corpus
    folder: Path | None = None
    num_threads: int = 1
    metric: str = "valid"
    minimise: bool = True

    @cached_property
    def name(self) -> str:
        """``language``, the name of the corpus and a hash of its words, so runs on other texts are other runs."""
        return f"language/{self.corpus.name}/{self.corpus.digest[:12]}"

    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Every run by itself, the longest first."""
        return one_by_one(runs)

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Train; a run that was killed resumes from its checkpoint."""
        with threads(self.num_threads):
            return [self._outcome(run) for run in batch]

    def _outcome(self, run: Run) -> Outcome:
        key = key_of(self.name, run)
        with checkpoint_for(self.folder, key) as path:
            _, trained = train_language(self.corpus, run.settings, run.seed, key, path)
        return outcome_of(trained, run.settings["unroll"], len(self.corpus.vocabulary))


def train_language(
    corpus: Corpus, settings: Mapping[str, Any], seed: int, run: str = "", checkpoint: Path | None = None
) -> tuple[LanguageModel, Trained]:
    """Build the LSTM that ``settings`` describe and train it, on a GPU if there is one."""
    device = own_device()
    with drawn_from(seed):
        model = lstm(len(corpus.vocabulary), settings["divisor"], settings["dropout"], settings["initial"])
    task = LanguageTask(corpus, settings["batch_size"], settings["unroll"], settings["measured_rows"], device)
    schedule = schedule_of(settings, task.steps_per_epoch)
    how = TrainingSettings(
        schedule, settings["epochs"], max_norm=settings["max_norm"], evaluate_every=settings["evaluate_every"]
    )
    return model, train(model.to(device), task, how, seed, run, checkpoint)


def schedule_of(settings: Mapping[str, Any], steps_per_epoch: int) -> Schedule:
    """The schedule that ``settings`` describe; that of Zaremba et al. is given in epochs."""
    total = settings["epochs"] * steps_per_epoch
    if settings["schedule"] != "hold_then_decay":
        return make_schedule(settings, total, {})
    hold = settings["hold_epochs"] * steps_per_epoch
    return hold_then_decay(total, settings["lr"], hold, steps_per_epoch, settings["factor"])


def outcome_of(trained: Trained, unroll: int, num_words: int) -> Outcome:
    """Perplexities, the exponential of the mean loss per word, of the last training epoch and of both other texts.

    A perplexity above the number of words is worse than guessing; such a run counts as diverged.
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
    """Exponential of the loss, limited to finite numbers."""
    return math.exp(min(loss, 700.0))
