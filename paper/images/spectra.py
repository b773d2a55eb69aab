"""Measurements of trained image networks: the spectrum, and the schedule that follows from noise and start."""

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

from eigencurve import Spectrum, plan
from eigencurve.hessian import HessianOperator, SpectrumEstimate, estimate_noise, estimate_spectrum, estimate_start
from eigencurve.runs import Outcome, Run
from paper.images.experiment import ImageData, train_images
from paper.images.task import best_layout
from paper.models.registry import build
from paper.training.runs import TrainingRuns
from paper.training.settings import points_of


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
        "moved": min(estimate.schedule_change, 1e9), "settled": float(estimate.reason == "settled"),
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


def recommendation_experiment(data: ImageData, spectrum: Spectrum, folder: Path | None = None) -> TrainingRuns:
    """Training runs that end with a measurement of noise and start, and the schedule that ``plan`` makes of both.

    The settings are those of the run whose spectrum was measured (see :func:`spectrum_experiment`), ``spectrum``, the
    name of that spectrum, and ``momenta``. For each momentum, the curve of that name is the recommended schedule in
    pairs of (fraction of the run, share of the largest rate).
    """
    return TrainingRuns(f"recommendation/{data.name}", partial(_train_one, data, spectrum), "sigma2", True, folder)


def _train_one(data: ImageData, spectrum: Spectrum, run: Run, key: str, checkpoint: Path | None) -> Outcome:
    model, trained = train_images(data, run.settings, run.seed, {}, key, checkpoint)
    if trained.diverged:
        return Outcome({"num_steps": trained.num_steps}, diverged=True)
    return recommend(model, data, run.settings, run.seed, spectrum)


def recommend(model: nn.Module, data: ImageData, settings: Mapping[str, Any], seed: int, spectrum: Spectrum) -> Outcome:
    """Measure noise and start at the end of a run, and plan a schedule for each momentum."""
    operator, decay = operator_on(model, data, settings), settings["weight_decay"]
    count = settings["num_products"] // 2
    noise = estimate_noise(
        operator, spectrum, settings["batch_size"], num_products=count, seed=seed, weight_decay=decay, progress=False
    )
    begin = build(settings["model"], data.train.num_classes, settings["divisor"], seed)
    start = estimate_start(operator, (begin, model), spectrum, num_products=count, weight_decay=decay, progress=False)
    curves = {}
    for momentum in settings["momenta"]:
        recommended = plan(
            spectrum, total_steps=settings["schedule_steps"], momentum=momentum, weight_decay=decay, noise=noise,
            initial_error=start,
        )  # fmt: skip
        curves[curve_name(momentum)] = points_of(recommended.schedule)
    return Outcome({"sigma2": noise.sigma2}, curves=curves)


def curve_name(momentum: float) -> str:
    """Name of the curve for a momentum."""
    return f"momentum {momentum:g}"
