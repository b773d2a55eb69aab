"""Spectra of trained image networks: train with momentum and step decay, then estimate on one batch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from eigencurve import Spectrum
from eigencurve.hessian import HessianOperator, SpectrumEstimate, estimate_spectrum
from eigencurve.runs import Outcome, Run
from paper.images.experiment import ImageData, train_images
from paper.images.task import best_layout
from paper.training.runs import TrainingRuns


def spectrum_experiment(data: ImageData, folder: Path | None = None) -> TrainingRuns:
    """Training runs that end with an estimate of the spectrum; a killed run resumes in either part.

    The settings are those of a training run, and ``num_images``, ``num_products``, ``settle``, ``microbatch`` and
    ``schedule_steps`` of the estimate. The curve of an outcome is the sharpened spectrum as pairs of (signed
    eigenvalue, weight). ``curves`` holds the Lanczos tridiagonal that it was computed from, and the octaves of
    |λ| + weight decay with their errors.
    """
    return TrainingRuns(f"spectra/{data.name}", partial(_train_and_estimate, data), "accuracy", False, folder)


def _train_and_estimate(data: ImageData, run: Run, key: str, checkpoint: Path | None) -> Outcome:
    model, trained = train_images(data, run.settings, run.seed, {}, key, checkpoint)
    if trained.diverged:
        return Outcome({"num_steps": trained.num_steps}, diverged=True, curves=trained.history)
    vectors = None if checkpoint is None else checkpoint.with_suffix(".npz")
    estimate = estimate_on(model, data, run.settings, run.seed, vectors)
    return _outcome(estimate, trained.last, trained.history)


def estimate_on(
    model: nn.Module, data: ImageData, settings: Mapping[str, Any], seed: int, checkpoint: Path | None
) -> SpectrumEstimate:
    """The spectrum of the mean loss on the first training images, in eval mode."""
    return estimate_spectrum(
        operator_on(model, data, settings), settings["num_products"], seed=seed, settle=settings["settle"],
        weight_decay=settings["weight_decay"], total_steps=settings["schedule_steps"], checkpoint=checkpoint,
        progress=False,
    )  # fmt: skip


def operator_on(model: nn.Module, data: ImageData, settings: Mapping[str, Any]) -> HessianOperator:
    """The Hessian of the mean loss on the first training images, in eval mode."""
    device, count = next(model.parameters()).device, settings["num_images"]
    train, _ = data.split("test")
    images, labels = next(train.plain([torch.arange(count)]))
    batch = images.to(device, memory_format=best_layout(model)), labels.to(device)
    return HessianOperator(model, F.cross_entropy, batch, microbatch=settings["microbatch"])


def spectrum_of(outcome: Outcome) -> Spectrum:
    """The measured spectrum, with signed eigenvalues."""
    eigenvalues, weights = np.array(outcome.curve).T
    return Spectrum(eigenvalues, weights, int(outcome.metrics["dim"]))


def _outcome(
    estimate: SpectrumEstimate, last: Mapping[str, float], history: Mapping[str, list[tuple[float, float]]]
) -> Outcome:
    spectrum, octaves = estimate.spectrum, estimate.octaves
    metrics = {
        "dim": float(spectrum.dim or 0), "loss": last["train_loss"], "accuracy": 100 * last["accuracy"],
        "num_products": float(estimate.num_products), "num_distinct": float(estimate.num_distinct),
        "moved": min(estimate.moved, 1e9), "settled": float(estimate.reason == "settled"),
    }  # fmt: skip
    pairs = {
        "tridiagonal": zip(estimate.alphas[0].tolist(), estimate.betas[0].tolist(), strict=True),
        "octaves": zip(octaves.index.tolist(), octaves.share.tolist(), strict=True),
        "octave_errors": zip(octaves.index.tolist(), octaves.error.tolist(), strict=True),
    }
    curve = tuple(zip(spectrum.eigenvalues.tolist(), spectrum.weights.tolist(), strict=True))
    return Outcome(metrics, curve, curves={**history, **{name: tuple(values) for name, values in pairs.items()}})


def spectrum_name(settings: Mapping[str, Any], spectrum: Spectrum) -> str:
    """The name of a measured spectrum in settings: network, divisor of its widths, and a hash of its numbers."""
    digest = hashlib.sha256(spectrum.eigenvalues.tobytes() + spectrum.weights.tobytes())
    return f"{settings['model']}/{settings['divisor']}/{digest.hexdigest()[:8]}"
