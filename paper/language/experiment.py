"""Language modelling under a schedule: the paper's LSTM on the Penn Treebank."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from eigencurve import Schedule, hold_then_decay
from eigencurve.runs import Outcome, Run
from paper.data.ptb import Corpus
from paper.language.task import LanguageTask
from paper.models.lstm import LanguageModel, lstm
from paper.models.seeding import drawn_from
from paper.training.devices import own_device
from paper.training.loop import Trained, train
from paper.training.runs import TrainingRuns
from paper.training.schedules import make_schedule
from paper.training.settings import TrainingSettings


def language_experiment(corpus: Corpus, folder: Path | None = None) -> TrainingRuns:
    """Training runs on a text; settings are chosen by the perplexity on the validation text.

    The settings of a run are the network's (``divisor`` of its width, ``dropout``, ``initial``), ``epochs``,
    ``batch_size``, ``unroll``, ``max_norm`` of the gradient, ``measured_rows``, ``evaluate_every``, and the schedule's
    own.

    Args:
        corpus: Texts to train and measure on.
        folder: Folder for checkpoints of unfinished runs; None keeps none.
    """
    name = f"language/{corpus.name}/{corpus.digest[:12]}"
    return TrainingRuns(name, partial(_train_one, corpus), "valid", minimise=True, folder=folder)


def _train_one(corpus: Corpus, run: Run, key: str, checkpoint: Path | None) -> Outcome:
    _, trained = train_language(corpus, run.settings, run.seed, key, checkpoint)
    return outcome_of(trained, run.settings["unroll"], len(corpus.vocabulary))


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
