"""The recommended schedule for a network: the numerically best one for the noise and the start measured on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from eigencurve.experiments.engine.protocol import one_by_one
from eigencurve.experiments.images.experiment import ImageData, train_images
from eigencurve.experiments.images.spectra import operator_on
from eigencurve.experiments.models.registry import build
from eigencurve.experiments.training.checkpoint import checkpoint_for
from eigencurve.experiments.training.devices import threads
from eigencurve.hessian.noise import estimate_noise
from eigencurve.hessian.start import estimate_start
from eigencurve.runs.store import Outcome, Run, key_of
from eigencurve.schedules.base import Schedule
from eigencurve.spectrum.spectrum import Spectrum, prepare
from eigencurve.theory.optimal import knots_for
from eigencurve.theory.quadratic import NoisyQuadratic

Points = tuple[tuple[float, float], ...]
NUM_POINTS = 128


@dataclass(frozen=True, eq=False)
class RecommendationExperiment:
    """Training runs that end with a measurement of noise and start, and the best schedule for both.

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
        """Train, measure and search; a run that was killed resumes in its training."""
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
    """Measure noise and start at the end of a run, and search the best schedule for each momentum.

    The search allows rates up to half the largest stable one.
    """
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
        quadratic = NoisyQuadratic(prepare(spectrum, decay), noise, start, momentum)
        found = quadratic.search_best(settings["schedule_steps"], max_lr=quadratic.stable_rate / 2)
        curves[curve_name(momentum)] = points_of(found.schedule)
    return Outcome({"sigma2": noise.sigma2}, curves=curves)


def points_of(schedule: Schedule) -> Points:
    """A schedule in pairs of (fraction of the run, share of the largest rate), as many as describe it well.

    >>> from eigencurve import linear
    >>> points_of(linear(5, 0.1, 0.02))
    ((0.0, 1.0), (0.25, 0.84), (0.5, 0.68), (0.75, 0.52), (1.0, 0.36))
    """
    knots = knots_for(schedule.total_steps, NUM_POINTS)
    rates = schedule(knots)
    last = max(1, schedule.total_steps - 1)
    shares = rates / rates.max()
    return tuple((round(float(k) / last, 6), round(float(s), 6)) for k, s in zip(knots, shares, strict=True))


def curve_name(momentum: float) -> str:
    """Name of the curve for a momentum."""
    return f"momentum {momentum:g}"
