"""The schedule that ``plan`` recommends for a network, from the noise and the start measured on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from eigencurve import Spectrum, plan
from eigencurve.hessian import estimate_noise, estimate_start
from eigencurve.runs import Outcome, Run, key_of
from paper.engine.protocol import one_by_one
from paper.images.experiment import ImageData, train_images
from paper.images.spectra import operator_on
from paper.models.registry import build
from paper.training.checkpoint import checkpoint_for
from paper.training.devices import threads
from paper.training.schedules import points_of


@dataclass(frozen=True, eq=False)
class RecommendationExperiment:
    """Training runs that end with a measurement of noise and start, and the schedule that ``plan`` makes of both.

    The settings are those of the run whose spectrum was measured (see :class:`SpectrumExperiment`), ``spectrum``, the
    name of that spectrum, and ``momenta``. For each momentum, the curve of that name is the recommended schedule in
    pairs of (fraction of the run, share of the largest rate).

    Attributes:
        data: Images to train and measure on.
        spectrum: Spectrum at the end of the same run, with signed eigenvalues.
        folder: Folder for checkpoints of unfinished runs; None keeps none.
        num_threads: Number of threads per run.
        metric: A metric of the outcomes; nothing is chosen by it.
        minimise: Whether smaller is better.
    """

    data: ImageData
    spectrum: Spectrum
    folder: Path | None = None
    num_threads: int = 1
    metric: str = "sigma2"
    minimise: bool = True

    @cached_property
    def name(self) -> str:
        """``recommendation``, the name of the data and a hash of its pixels."""
        return f"recommendation/{self.data.train.name}/{self.data.digest[:12]}"

    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Every run by itself, the longest first."""
        return one_by_one(runs)

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Train, measure and plan; a run that was killed resumes in its training."""
        with threads(self.num_threads):
            return [self._outcome(run) for run in batch]

    def _outcome(self, run: Run) -> Outcome:
        key = key_of(self.name, run)
        with checkpoint_for(self.folder, key) as path:
            model, trained = train_images(self.data, run.settings, run.seed, {}, key, path)
            if trained.diverged:
                return Outcome({"num_steps": trained.num_steps}, diverged=True)
            return recommend(model, self.data, run.settings, run.seed, self.spectrum)


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
