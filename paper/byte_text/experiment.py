"""A byte-level transformer under a schedule, and the spectrum of its preconditioned Hessian after a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from eigencurve import Schedule, Spectrum
from eigencurve.hessian import HessianOperator, SpectrumEstimate, estimate_spectrum
from eigencurve.runs import Outcome, Run
from paper.byte_text.task import ByteTask
from paper.data.ptb import ByteText
from paper.models.registry import build
from paper.models.transformer import NUM_BYTES, next_byte_loss
from paper.training.devices import own_device
from paper.training.loop import Trained, train
from paper.training.runs import TrainingRuns
from paper.training.settings import TrainingSettings, make_schedule

DIGITS = 6  # of a stored loss


def byte_experiment(
    text: ByteText, spectra: Mapping[str, Spectrum] | None = None, folder: Path | None = None
) -> TrainingRuns:
    """Training runs on bytes; settings are chosen by the validation loss.

    The settings of a run are ``model``, ``divisor`` of its widths, ``context``, ``batch_size``, ``epochs``,
    ``steps_per_epoch``, ``num_valid``, ``weight_decay``, ``betas``, ``max_norm``, ``precision``, ``warmup_steps``, and
    the schedule's own. With ``num_rows``, the run ends with an estimate of the preconditioned spectrum on so many
    windows, whose further settings are ``num_products`` and ``settle``.

    The curves of an outcome are ``train_loss`` of every step, before its update; ``lr`` of every step; and
    ``valid_loss`` after the given number of steps.
    """
    name = f"bytes/{text.name}/{text.digest[:12]}"
    return TrainingRuns(name, partial(_train_one, text, spectra or {}), "valid", minimise=True, folder=folder)


def _train_one(text: ByteText, spectra: Mapping[str, Spectrum], run: Run, key: str, checkpoint: Path | None) -> Outcome:
    model, task, trained = train_bytes(text, run.settings, run.seed, spectra, key, checkpoint)
    if "num_rows" not in run.settings or trained.diverged:
        return outcome_of(model, task, trained, schedule_of(run.settings, spectra))
    vectors = None if checkpoint is None else checkpoint.with_suffix(".npz")
    spectrum = preconditioned_spectrum(model, text, run.settings, trained, run.seed, vectors).spectrum
    pairs = zip(spectrum.eigenvalues.tolist(), spectrum.weights.tolist(), strict=True)
    return Outcome({"dim": float(spectrum.dim or 0)}, tuple(pairs))


def schedule_of(settings: Mapping[str, Any], spectra: Mapping[str, Spectrum]) -> Schedule:
    """The schedule that ``settings`` describe, with its warmup."""
    return make_schedule(settings, settings["epochs"] * settings["steps_per_epoch"], spectra)


def train_bytes(
    text: ByteText, settings: Mapping[str, Any], seed: int, spectra: Mapping[str, Spectrum], run: str = "",
    checkpoint: Path | None = None,
) -> tuple[nn.Module, ByteTask, Trained]:  # fmt: skip
    """Build the transformer that ``settings`` describe and train it with AdamW, on a GPU if there is one."""
    device = own_device()
    model = build(settings["model"], NUM_BYTES, settings["divisor"], seed).to(device)
    task = ByteTask(
        text, settings["batch_size"], settings["context"], settings["steps_per_epoch"], settings["num_valid"], seed,
        device,
    )  # fmt: skip
    how = TrainingSettings(
        schedule_of(settings, spectra), settings["epochs"], weight_decay=settings["weight_decay"],
        max_norm=settings["max_norm"], optimizer="adamw", betas=tuple(settings["betas"]),
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
