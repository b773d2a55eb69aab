"""Spectrum, noise and distance to the end of a network at one moment, kept in one file; numbers derived from these."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from eigencurve import save_spectrum
from eigencurve.hessian import (
    HessianOperator,
    PreconditionedOperator,
    SpectrumEstimate,
    estimate_noise,
    estimate_spectrum,
    estimate_start,
    log_curve,
    plan_memory,
)
from eigencurve.spectrum.files import SpectrumFile, parse_spectrum
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.start import StartEstimate
from paper.arrays import Array
from paper.studies.noise_training import END, MOMENTS, START, NoiseScale, Problem, State, Subject, fresh_model

# Weight decay of a spectrum without the metric of an optimizer whose decay is decoupled from the gradient.
PLAIN_DECAY = 5e-4
PLAIN, OWN = "plain", "own"
MICROBATCH = 128
# An octave counts if the relative standard error of its noise is below this.
ENOUGH_SIGNAL = 0.5
# In the lowest octave most of |λ| + weight decay is weight decay, so σ² is no property of H there.
EDGE = 1.5
FEWEST = 3
METRIC_WORDS = {PLAIN: "", OWN: ", in AdamW's metric"}


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
        file = load_measured(path)
        plan = plan_memory(operator.dim, scale.num_products, None, operator.dtype, operator.device)
        return SpectrumEstimate(**vars(file.measurement), spectrum=file.spectrum, plan=plan)
    checkpoint = path.with_suffix(".part")
    estimate = estimate_spectrum(
        operator, scale.num_products, seed=how.probe, settle=None, weight_decay=decay_in(subject, how.metric),
        checkpoint=checkpoint, progress=False,
    )  # fmt: skip
    save_spectrum(estimate.spectrum, path, estimate.measurement(made_by))
    for part in path.parent.glob(f"{checkpoint.name}*"):
        part.unlink()
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


@dataclass(frozen=True, eq=False)
class Measured:
    """A network at one moment."""

    step: int  # number of training steps taken; -1 if unknown
    metrics: Mapping[str, float]  # last measurements of the training run
    file: SpectrumFile  # spectrum, its record, and noise and start if they were measured


@dataclass(frozen=True, eq=False)
class Studied:
    """Everything that was measured of a network."""

    subject: Subject  # the network
    total_steps: int  # number of steps of its training; 0 if unknown
    results: Mapping[Measuring, Measured]  # results of each measurement

    @property
    def metrics(self) -> list[str]:
        """``"plain"`` and, for an adaptive optimizer, ``"own"``."""
        return list(dict.fromkeys(how.metric for how in self.results))

    def moments(self, metric: str) -> dict[str, Measured]:
        """The results of the first probe in one metric, by moment."""
        wanted = {moment: usual(self.subject, moment, metric) for moment in MOMENTS}
        return {moment: self.results[how] for moment, how in wanted.items() if how in self.results}

    def other_probe(self, metric: str) -> Measured | None:
        """The end, measured from another probe."""
        return self.results.get(usual(self.subject, END, metric, probe=1))

    def title(self, metric: str) -> str:
        """Name of the network and the metric."""
        return self.subject.title + METRIC_WORDS[metric]


def noise_of(measured: Measured) -> NoiseEstimate:
    """The noise of a measurement that has one."""
    if measured.file.noise is None:
        raise ValueError("the measurement has no noise")
    return measured.file.noise


def resolved(noise: NoiseEstimate) -> Array:
    """The octaves that count, as a mask: above the weight decay, and with a small enough error."""
    octaves = noise.octaves
    above = octaves.lower > EDGE * noise.weight_decay
    return np.asarray(above & (octaves.error < ENOUGH_SIGNAL * octaves.sigma2))


def spread(noise: NoiseEstimate) -> float:
    """The largest noise level of an octave that counts, divided by the smallest; NaN if there are fewer than three."""
    level = noise.octaves.sigma2[resolved(noise)]
    return float(level.max() / level.min()) if len(level) >= FEWEST else math.nan


def distance(first: Measured, second: Measured, weight_decay: float, total_steps: int) -> float:
    """Largest |ln f/g| between the Eigencurve schedules of two measurements."""
    curves = [log_curve(one.file.spectrum, weight_decay, total_steps) for one in (first, second)]
    return float(np.abs(curves[0] - curves[1]).max())


def plus_minus(value: float, error: float) -> str:
    """A number and its standard error."""
    return f"{value:.2e} ± {error:.1e}"


def exponent_text(noise: NoiseEstimate) -> str:
    """γ and its standard error."""
    return "–" if math.isnan(noise.exponent) else f"{noise.exponent:.2f} ± {noise.exponent_error:.2f}"


def factor_text(number: float) -> str:
    """A ratio; a dash for NaN."""
    return "–" if math.isnan(number) else f"{number:,.3g}" if number < 100 else f"{number:,.0f}"
