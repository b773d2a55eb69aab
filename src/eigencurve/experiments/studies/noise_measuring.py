"""Spectrum, gradient noise and distance to the end of a network at one moment of its training, kept in one file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from eigencurve.experiments.studies.noise_subjects import NoiseScale
from eigencurve.experiments.studies.noise_training import END, START, Problem, State, Subject, fresh_model
from eigencurve.hessian.estimate import SpectrumEstimate, estimate_spectrum
from eigencurve.hessian.noise import estimate_noise
from eigencurve.hessian.operator import HessianOperator
from eigencurve.hessian.preconditioned import PreconditionedOperator
from eigencurve.hessian.start import estimate_start
from eigencurve.spectrum.files import SpectrumFile, parse_spectrum, save_spectrum
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.start import StartEstimate

# Weight decay of a spectrum without the metric of an optimizer whose decay is decoupled from the gradient.
PLAIN_DECAY = 5e-4
PLAIN, OWN = METRICS = ("plain", "own")
MICROBATCH = 128


@dataclass(frozen=True)
class Measuring:
    """How to measure a network at one moment.

    Attributes:
        moment: One of ``MOMENTS``.
        num_curved: Number of examples of the Hessian.
        metric: ``"plain"``, or ``"own"`` for the metric of the network's adaptive optimizer.
        probe: Seed of the probe. Only seed 0 measures the noise.
    """

    moment: str
    num_curved: int
    metric: str = PLAIN
    probe: int = 0


def measurings(subject: Subject, scale: NoiseScale) -> list[Measuring]:
    """Everything to measure of a subject: each moment; the end with another probe and, if asked, fewer examples."""
    metrics = [PLAIN, OWN] if subject.optimizer == "adamw" else [PLAIN]
    # Before its first step an adaptive optimizer has no metric.
    every = [
        Measuring(moment, subject.num_curved, metric)
        for metric in metrics for moment in subject.moments if (metric, moment) != (OWN, START)
    ]  # fmt: skip
    every += [Measuring(END, subject.num_curved, metric, probe=1) for metric in metrics[-1:] if subject.epochs]
    if subject.name in scale.checked:
        every.append(fewer_examples(subject))
    return every


def fewer_examples(subject: Subject) -> Measuring:
    """The end of the training with a quarter of the examples in the Hessian."""
    return Measuring(END, max(1, subject.num_curved // 4))


def decay_in(subject: Subject, metric: str) -> float:
    """Weight decay that is added to every eigenvalue."""
    return PLAIN_DECAY if subject.optimizer == "adamw" and metric == PLAIN else subject.weight_decay


def file_of(subject: Subject, problem: Problem, scale: NoiseScale, how: Measuring, folder: Path) -> Path:
    """The file that holds the measurement, or will hold it; its name depends on all settings."""
    counts = [scale.num_products, scale.num_noise_steps, scale.num_samples, subject.num_noisy, how.num_curved]
    text = json.dumps([subject.key(problem.digest), counts, how.metric])
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return folder / f"{subject.name}_{how.moment.replace(' ', '_')}_{how.metric}_{how.probe}_{digest}.npz"


def load_measured(path: Path) -> SpectrumFile:
    """A finished measurement."""
    return parse_spectrum(path.read_bytes(), ".npz", path)


def measure(
    subject: Subject, problem: Problem, scale: NoiseScale, how: Measuring, state: State, path: Path, made_by: str = ""
) -> None:
    """Measure a state and write the file; a measurement that was killed resumes from the checkpoints next to it."""
    operator = operator_of(subject, problem, how, state)
    files = {name: path.with_suffix(f".{name}.part") for name in ("spectrum", "noise", "start")}
    estimate = estimate_spectrum(
        operator, scale.num_products, seed=how.probe, settle=None, weight_decay=decay_in(subject, how.metric),
        checkpoint=files["spectrum"], progress=False,
    )  # fmt: skip
    noise = None if how.probe else _noise(subject, problem, scale, operator, estimate, state, files)
    start = None if how.probe else _start(subject, scale, operator, estimate, how, state, files)
    save_spectrum(estimate.spectrum, path, estimate.measurement(made_by), noise, start)
    for file in path.parent.glob(f"{path.stem}.*.part*"):
        file.unlink()


def operator_of(
    subject: Subject, problem: Problem, how: Measuring, state: State
) -> HessianOperator | PreconditionedOperator:
    """The Hessian in eval mode on the first examples, in the metric that ``how`` names."""
    microbatch = None if how.num_curved <= 2 * MICROBATCH else MICROBATCH
    batch = problem.examples(how.num_curved)
    plain = HessianOperator(state.model, problem.loss, batch, microbatch=microbatch, check=how.moment == END)
    if how.metric == PLAIN:
        return plain
    if state.optimizer is None:
        raise ValueError(f"{subject.name}: no optimizer, so no metric of its own")
    return plain.preconditioned_by(state.optimizer)


def _noise(
    subject: Subject, problem: Problem, scale: NoiseScale, operator: HessianOperator | PreconditionedOperator,
    estimate: SpectrumEstimate, state: State, files: Mapping[str, Path],
) -> NoiseEstimate:  # fmt: skip
    examples = HessianOperator(
        state.model, problem.loss, problem.examples(subject.num_noisy), microbatch=MICROBATCH, check=False
    )
    return estimate_noise(
        operator, estimate, subject.batch_size, num_samples=scale.num_samples, num_steps=scale.num_noise_steps,
        examples=examples, checkpoint=files["noise"], progress=False,
    )  # fmt: skip


def _start(
    subject: Subject, scale: NoiseScale, operator: Any, estimate: SpectrumEstimate, how: Measuring, state: State,
    files: Mapping[str, Path],
) -> StartEstimate | None:  # fmt: skip
    """The distance from the start of the training to its end, measured at the end of a run that began here."""
    if how.moment != END or not subject.epochs:
        return None
    first: dict[str, Tensor] = dict(fresh_model(subject).named_parameters())
    pair = (first, dict(state.model.named_parameters()))
    return estimate_start(
        operator, pair, estimate, num_steps=scale.num_noise_steps, checkpoint=files["start"], progress=False
    )
