"""Spectrum, gradient noise and distance to the end of a network at one moment of its training, kept in one file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from eigencurve import save_spectrum
from eigencurve.hessian import (
    HessianOperator,
    PreconditionedOperator,
    SpectrumEstimate,
    estimate_noise,
    estimate_spectrum,
    estimate_start,
    plan_memory,
)
from eigencurve.spectrum.files import SpectrumFile, parse_spectrum
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.start import StartEstimate
from paper.studies.noise_training import END, START, NoiseScale, Problem, State, Subject, fresh_model

# Weight decay of a spectrum without the metric of an optimizer whose decay is decoupled from the gradient.
PLAIN_DECAY = 5e-4
PLAIN, OWN = METRICS = ("plain", "own")
MICROBATCH = 128


@dataclass(frozen=True)
class Measuring:
    """How to measure a network at one moment."""

    moment: str  # one of `MOMENTS`
    num_curved: int  # number of examples of the Hessian
    num_noisy: int  # Number of examples of the noise. Those of the Hessian are among them.
    metric: str = PLAIN  # `"plain"`, or `"own"` for the metric of the network's adaptive optimizer
    probe: int = 0  # Seed of the probe. Only seed 0 measures the noise.


def usual(subject: Subject, moment: str, metric: str = PLAIN, probe: int = 0) -> Measuring:
    """The Hessian and the noise of the same examples, so both belong to one loss."""
    return Measuring(moment, subject.num_curved, subject.num_curved, metric, probe)


def fewer_examples(subject: Subject) -> Measuring:
    """The end of the training with a quarter of the examples."""
    count = max(2, subject.num_curved // 4)
    return Measuring(END, count, count)


def noisier_examples(subject: Subject) -> Measuring:
    """The end of the training with the noise of more examples than the Hessian."""
    return Measuring(END, subject.num_curved, subject.num_noisy)


def measurings(subject: Subject, scale: NoiseScale) -> list[Measuring]:
    """Everything to measure of a subject: each moment; the end with another probe and, if asked, other examples."""
    metrics = [PLAIN, OWN] if subject.optimizer == "adamw" else [PLAIN]
    # Before its first step an adaptive optimizer has no metric.
    every = [
        usual(subject, moment, metric)
        for metric in metrics for moment in subject.moments if (metric, moment) != (OWN, START)
    ]  # fmt: skip
    every += [usual(subject, END, metrics[-1], probe=1)] if subject.epochs else []
    every += [fewer_examples(subject)] if subject.name in scale.fewer else []
    every += [noisier_examples(subject)] if subject.name in scale.noisier else []
    return every


def decay_in(subject: Subject, metric: str) -> float:
    """Weight decay that is added to every eigenvalue."""
    return PLAIN_DECAY if subject.optimizer == "adamw" and metric == PLAIN else subject.weight_decay


def file_of(subject: Subject, problem: Problem, scale: NoiseScale, how: Measuring, folder: Path) -> Path:
    """The file that holds the measurement, or will hold it; its name depends on all settings."""
    counts = [scale.num_products, scale.num_noise_steps, scale.num_samples, how.num_noisy, how.num_curved]
    return _file(subject, problem, how, counts, folder)


def spectrum_file_of(subject: Subject, problem: Problem, scale: NoiseScale, how: Measuring, folder: Path) -> Path:
    """The file of the spectrum alone, which several measurements of the noise share."""
    return _file(subject, problem, how, [scale.num_products, how.num_curved], folder).with_suffix(".spectrum.npz")


def _file(subject: Subject, problem: Problem, how: Measuring, counts: list[int], folder: Path) -> Path:
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
    shared = spectrum_file_of(subject, problem, scale, how, path.parent)
    estimate = _estimate(subject, scale, how, operator, shared, made_by)
    noise = start = None
    if not how.probe:
        noise = _noise(subject, problem, scale, how, operator, estimate, state, path.with_suffix(".noise.part"))
    if how == usual(subject, END, how.metric) and subject.epochs:
        start = _start(subject, scale, operator, estimate, state, path.with_suffix(".start.part"))
    save_spectrum(estimate.spectrum, path, estimate.measurement(made_by), noise, start)
    for file in path.parent.glob(f"{path.stem}.*.part*"):
        file.unlink()


def _estimate(
    subject: Subject, scale: NoiseScale, how: Measuring, operator: HessianOperator | PreconditionedOperator, path: Path,
    made_by: str,
) -> SpectrumEstimate:  # fmt: skip
    """The spectrum, from its file if that exists."""
    if path.exists():
        known = load_measured(path)
        plan = plan_memory(operator.dim, scale.num_products, None, operator.dtype, operator.device)
        return SpectrumEstimate(**vars(known.measurement), spectrum=known.spectrum, plan=plan)
    checkpoint = path.with_suffix(".part")
    estimate = estimate_spectrum(
        operator, scale.num_products, seed=how.probe, settle=None, weight_decay=decay_in(subject, how.metric),
        checkpoint=checkpoint, progress=False,
    )  # fmt: skip
    save_spectrum(estimate.spectrum, path, estimate.measurement(made_by))
    for file in path.parent.glob(f"{checkpoint.name}*"):
        file.unlink()
    return estimate


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
    subject: Subject, problem: Problem, scale: NoiseScale, how: Measuring,
    operator: HessianOperator | PreconditionedOperator, estimate: SpectrumEstimate, state: State, checkpoint: Path,
) -> NoiseEstimate:  # fmt: skip
    examples = None
    if how.num_noisy != how.num_curved:
        batch = problem.examples(how.num_noisy)
        examples = HessianOperator(state.model, problem.loss, batch, microbatch=MICROBATCH, check=False)
    return estimate_noise(
        operator, estimate, subject.batch_size, num_samples=scale.num_samples, num_products=scale.num_noise_steps,
        examples=examples, checkpoint=checkpoint, progress=False,
    )  # fmt: skip


def _start(
    subject: Subject, scale: NoiseScale, operator: HessianOperator | PreconditionedOperator, estimate: SpectrumEstimate,
    state: State, checkpoint: Path,
) -> StartEstimate:  # fmt: skip
    """The distance from the start of the training to its end, at the end."""
    first: dict[str, Tensor] = dict(fresh_model(subject).named_parameters())
    pair = (first, dict(state.model.named_parameters()))
    return estimate_start(
        operator, pair, estimate, num_products=scale.num_noise_steps, checkpoint=checkpoint, progress=False
    )
