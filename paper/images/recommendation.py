"""The schedule that ``plan`` recommends for a network, from the noise and the start measured on it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from eigencurve import Spectrum, plan
from eigencurve.hessian import estimate_noise, estimate_start
from eigencurve.runs import Outcome, Run
from paper.images.experiment import ImageData, train_images
from paper.images.spectra import operator_on
from paper.models.registry import build
from paper.training.runs import TrainingRuns
from paper.training.schedules import points_of


def recommendation_experiment(data: ImageData, spectrum: Spectrum, folder: Path | None = None) -> TrainingRuns:
    """Training runs that end with a measurement of noise and start, and the schedule that ``plan`` makes of both.

    The settings are those of the run whose spectrum was measured (see :func:`spectrum_experiment`), ``spectrum``, the
    name of that spectrum, and ``momenta``. For each momentum, the curve of that name is the recommended schedule in
    pairs of (fraction of the run, share of the largest rate).

    Args:
        data: Images to train and measure on.
        spectrum: Spectrum at the end of the same run, with signed eigenvalues.
        folder: Folder for checkpoints of unfinished runs; None keeps none.
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
    noise = estimate_noise(
        operator, spectrum, settings["batch_size"], seed=seed, weight_decay=decay, progress=False,
        num_steps=settings["num_products"] // 2,
    )  # fmt: skip
    begin = build(settings["model"], data.train.num_classes, settings["divisor"], seed)
    start = estimate_start(
        operator, (begin, model), spectrum, weight_decay=decay, progress=False, num_steps=settings["num_products"] // 2
    )
    curves = {}
    for momentum in settings["momenta"]:
        found = plan(
            spectrum, total_steps=settings["schedule_steps"], momentum=momentum, weight_decay=decay, noise=noise,
            initial_error=start,
        )  # fmt: skip
        curves[curve_name(momentum)] = points_of(found.schedule)
    return Outcome({"sigma2": noise.sigma2}, curves=curves)


def curve_name(momentum: float) -> str:
    """Name of the curve for a momentum."""
    return f"momentum {momentum:g}"
