"""Spectra of trained image networks: train with momentum and step decay, then estimate on one batch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from eigencurve import Spectrum
from eigencurve.hessian import HessianOperator, SpectrumEstimate, estimate_spectrum
from eigencurve.runs import Outcome, Run, key_of
from paper.engine.protocol import one_by_one
from paper.images.experiment import ImageData, train_images
from paper.images.task import best_layout
from paper.training.checkpoint import checkpoint_for
from paper.training.devices import threads


@dataclass(frozen=True, eq=False)
class SpectrumExperiment:
    """Training runs that end with an estimate of the spectrum.

    The settings are those of a training run, and ``num_images``, ``num_products``, ``settle``, ``microbatch`` and
    ``schedule_steps`` of the estimate. The curve of an outcome is the sharpened spectrum as pairs of (signed
    eigenvalue, weight). ``curves`` holds the Lanczos tridiagonal that it was computed from, and the octaves of
    |λ| + weight decay with their errors.
    """

    data: ImageData
    folder: Path | None = None
    num_threads: int = 1
    metric: str = "accuracy"
    minimise: bool = False

    @cached_property
    def name(self) -> str:
        """``spectra``, the name of the data and a hash of its pixels."""
        return f"spectra/{self.data.train.name}/{self.data.digest[:12]}"

    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Every run by itself, the longest first."""
        return one_by_one(runs)

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Train and estimate; a run that was killed resumes in either part."""
        with threads(self.num_threads):
            return [self._outcome(run) for run in batch]

    def _outcome(self, run: Run) -> Outcome:
        key = key_of(self.name, run)
        with checkpoint_for(self.folder, key) as path:
            model, trained = train_images(self.data, run.settings, run.seed, {}, key, path)
            if trained.diverged:
                return Outcome({"num_steps": trained.num_steps}, diverged=True, curves=trained.history)
            vectors = None if path is None else path.with_suffix(".npz")
            estimate = estimate_on(model, self.data, run.settings, run.seed, vectors)
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
