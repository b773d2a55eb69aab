"""A byte-level transformer under a schedule, and the spectrum of its preconditioned Hessian after a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from eigencurve import Schedule, Spectrum
from eigencurve.hessian import HessianOperator, SpectrumEstimate, estimate_spectrum
from eigencurve.runs import Outcome, Run, key_of
from paper.byte_text.task import ByteTask
from paper.data.byte_text import ByteText
from paper.engine.protocol import one_by_one
from paper.models.registry import build
from paper.models.transformer import NUM_BYTES, next_byte_loss
from paper.training.checkpoint import checkpoint_for
from paper.training.devices import own_device, threads
from paper.training.loop import Trained, train
from paper.training.schedules import make_schedule
from paper.training.settings import TrainingSettings

DIGITS = 6  # of a stored loss


@dataclass(frozen=True, eq=False)
class ByteExperiment:
    """Training runs on bytes.

    The settings of a run are ``model``, ``divisor`` of its widths, ``context``, ``batch_size``, ``epochs``,
    ``steps_per_epoch``, ``num_valid``, ``weight_decay``, ``betas``, ``max_norm``, ``precision``, ``warmup_steps``, and
    the schedule's own. With ``num_rows``, the run ends with an estimate of the preconditioned spectrum on so many
    windows, whose further settings are ``num_products`` and ``settle``.

    The curves of an outcome are ``train_loss`` of every step, before its update; ``lr`` of every step; and
    ``valid_loss`` after the given number of steps.

    Attributes:
        text: Texts to train and measure on.
        spectra: Measured spectra, by the name that settings refer to.
        folder: Folder for checkpoints of unfinished runs; None keeps none.
        num_threads: Number of threads per run. Results are bit-identical for the same number of threads.
        metric: Metric by which settings are chosen.
        minimise: Whether smaller is better; True here.
    """

    text: ByteText
    spectra: Mapping[str, Spectrum] = field(default_factory=dict)
    folder: Path | None = None
    num_threads: int = 1
    metric: str = "valid"
    minimise: bool = True

    @cached_property
    def name(self) -> str:
        """``bytes``, the name of the text and a hash of its bytes, so runs on other texts are other runs."""
        return f"bytes/{self.text.name}/{self.text.digest[:12]}"

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
            model, task, trained = train_bytes(self.text, run.settings, run.seed, self.spectra, key, path)
            if "num_rows" not in run.settings or trained.diverged:
                return outcome_of(model, task, trained, schedule_of(run.settings, self.spectra))
            vectors = None if path is None else path.with_suffix(".npz")
            estimate = preconditioned_spectrum(model, self.text, run.settings, trained, run.seed, vectors)
        pairs = zip(estimate.spectrum.eigenvalues.tolist(), estimate.spectrum.weights.tolist(), strict=True)
        return Outcome({"dim": float(estimate.spectrum.dim or 0)}, tuple(pairs))


def schedule_of(settings: Mapping[str, Any], spectra: Mapping[str, Spectrum]) -> Schedule:
    """The schedule that ``settings`` describe, with its warmup."""
    return make_schedule(settings, settings["epochs"] * settings["steps_per_epoch"], spectra)


def train_bytes(
    text: ByteText,
    settings: Mapping[str, Any],
    seed: int,
    spectra: Mapping[str, Spectrum],
    run: str = "",
    checkpoint: Path | None = None,
) -> tuple[nn.Module, ByteTask, Trained]:
    """Build the transformer that ``settings`` describe and train it with AdamW, on a GPU if there is one."""
    device = own_device()
    model = build(settings["model"], NUM_BYTES, settings["divisor"], seed).to(device)
    task = ByteTask(
        text, settings["batch_size"], settings["context"], settings["steps_per_epoch"], settings["num_valid"], seed,
        device,
    )  # fmt: skip
    first, second = settings["betas"]
    how = TrainingSettings(
        schedule_of(settings, spectra), settings["epochs"], weight_decay=settings["weight_decay"],
        max_norm=settings["max_norm"], optimizer="adamw", betas=(first, second),
        precision=settings["precision"],
    )  # fmt: skip
    return model, task, train(model, task, how, seed, run, checkpoint)


def outcome_of(model: nn.Module, task: ByteTask, trained: Trained, schedule: Schedule) -> Outcome:
    """Losses in nats per byte: the last validation loss, the test loss, and the mean over the last training steps."""
    losses = [round(loss, DIGITS) for loss in task.losses.tolist()]
    steps = range(len(losses))
    valid = trained.history.get("valid_loss", [])
    curves = {
        "train_loss": [(float(t), loss) for t, loss in zip(steps, losses, strict=True) if np.isfinite(loss)],
        "lr": [(float(t), float(schedule(t))) for t in steps],
        "valid_loss": [(epoch * task.steps_per_epoch, round(loss, DIGITS)) for epoch, loss in valid],
    }
    if trained.diverged:
        return Outcome({"num_steps": float(trained.num_steps)}, diverged=True, curves=curves)
    last = {"valid": valid[-1][1], "test": task.test_loss(model), "train": trained.last["train_loss"]}
    return Outcome(last, curves=curves)


def preconditioned_spectrum(
    model: nn.Module, text: ByteText, settings: Mapping[str, Any], trained: Trained, seed: int, checkpoint: Path | None
) -> SpectrumEstimate:
    """The spectrum of P^(-1/2) H P^(-1/2) on evenly spaced windows of the training text, for AdamW's P."""
    if trained.optimizer is None:
        raise ValueError("preconditioned_spectrum: 'trained' must have its optimizer.")
    context, device = settings["context"], next(model.parameters()).device
    starts = np.linspace(0, len(text.train) - context - 1, settings["num_rows"]).astype(int)
    rows = text.train[torch.from_numpy(starts)[:, None] + torch.arange(context + 1)].to(device)
    operator = HessianOperator(
        model, next_byte_loss, (rows[:, :-1], rows[:, 1:]), microbatch=settings["batch_size"]
    ).preconditioned_by(trained.optimizer)
    return estimate_spectrum(
        operator, settings["num_products"], seed=seed, settle=settings["settle"],
        weight_decay=operator.eigenvalue_shift, total_steps=settings["epochs"] * settings["steps_per_epoch"],
        checkpoint=checkpoint, progress=False,
    )  # fmt: skip
