"""Language modelling under a schedule: the paper's LSTM on the Penn Treebank."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eigencurve import Schedule, hold_then_decay
from eigencurve.runs import Outcome, Run
from paper.data.ptb import Corpus, num_windows, rows_of, windows
from paper.models.lstm import LanguageModel, State, lstm
from paper.models.making import drawn_from
from paper.training.devices import own_device
from paper.training.loop import Trained, train
from paper.training.runs import TrainingRuns
from paper.training.settings import TrainingSettings, make_schedule
from paper.training.task import Batch, Part, Total


class LanguageTask:
    """Predict the next word; measure on the validation and test texts.

    The loss is that of Zaremba et al.: the mean over rows of the sum over the ``unroll`` words of a window, which is
    ``unroll`` times the mean loss per word. Their learning rate 1.0 and their gradient norm limit 10 refer to this sum.

    Args:
        corpus: Texts to train and measure on.
        batch_size: Number of rows that the training text is cut into.
        unroll: Number of words per window; gradients are truncated at its start.
        measured_rows: Number of rows that the other texts are cut into. 1 measures every word after all words before
            it; more rows are faster.
        device: Device for the batches.
    """

    def __init__(
        self, corpus: Corpus, batch_size: int, unroll: int, measured_rows: int, device: torch.device | None = None
    ) -> None:
        self.device = device or torch.device("cpu")
        self.unroll = unroll
        self.rows = rows_of(corpus.train, batch_size)
        self.measured = {name: rows_of(getattr(corpus, name), measured_rows) for name in ("valid", "test")}
        self.steps_per_epoch = num_windows(len(corpus.train), batch_size, unroll)
        self.state: State | None = None

    def batches(self, epoch: int, first: int, part: Part) -> Iterator[Batch]:  # noqa: ARG002 -- every epoch is alike
        """The windows from number ``first`` on; a process takes every ``part.count``-th row and keeps its own state."""
        if first == 0:
            self.state = None
        own = self.rows[part.rank :: part.count]
        for words, following in list(windows(own, self.unroll))[first:]:
            content = words.to(self.device), following.to(self.device)
            yield Batch(content, words.numel(), len(self.rows) * self.unroll)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The loss of a window, summed over its words and averaged over rows; the state is kept for the next window."""
        words, following = batch.content
        state = _plain(model).initial_state(len(words)) if self.state is None else self.state
        logits, state = model(words, state)
        self.state = State(*state).detached()
        return self.unroll * F.cross_entropy(logits.flatten(0, 1), following.flatten())

    def evaluate(self, model: nn.Module, part: Part) -> Mapping[str, Total]:
        """``valid_loss`` and ``test_loss``, the mean loss per word."""
        return {f"{name}_loss": self._total(model, rows, part) for name, rows in self.measured.items()}

    def _total(self, model: nn.Module, rows: Tensor, part: Part) -> Total:
        own = rows[part.rank :: part.count]
        if not len(own):
            return Total(0.0, 0)
        state, total = _plain(model).initial_state(len(own)), 0.0
        for words, following in windows(own, self.unroll, whole=False):
            logits, state = model(words.to(self.device), state)
            target = following.flatten().to(self.device)
            total += F.cross_entropy(logits.flatten(0, 1).float(), target, reduction="sum").item()
        return Total(total, own[:, 1:].numel())

    def state_dict(self) -> dict[str, Any]:
        """The state of the LSTM between two windows."""
        return {} if self.state is None else {name: value.cpu() for name, value in self.state._asdict().items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        self.state = State(**{name: value.to(self.device) for name, value in state.items()}) if state else None


def _plain(model: nn.Module) -> LanguageModel:
    """The model without the wrapper for several processes."""
    return cast(LanguageModel, getattr(model, "module", model))


def language_experiment(corpus: Corpus, folder: Path | None = None) -> TrainingRuns:
    """Training runs on a text; settings are chosen by the perplexity on the validation text.

    The settings of a run are the network's (``divisor`` of its width, ``dropout``, ``initial``), ``epochs``,
    ``batch_size``, ``unroll``, ``max_norm`` of the gradient, ``measured_rows``, ``evaluate_every``, and the schedule's
    own.
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
