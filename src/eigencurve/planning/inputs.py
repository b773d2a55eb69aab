"""The gradient noise and the start of a run on the quadratic, and where each comes from: measured, given or assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array
from eigencurve.planning.subject import Subject
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.start import StartEstimate
from eigencurve.theory.quadratic import NoisyQuadratic

# Assumed σ², as a multiple of the mean initial error. Near a minimum of a cross-entropy loss, the covariance of one
# example's gradient is about the Hessian, so σ² is about 1/B. A start with excess loss l has a mean initial error of
# 2l/d. For B = 128 and l = 2.3 (ten classes, untrained), the ratio d/(2lB) is 460 for a ResNet-20 and 19,000 for a
# ResNet-18. At a ratio of 1, noise hardly matters, and every decay looks useless.
ASSUMED_NOISE = 1e4
# Assumed excess loss of the start in nats, next to measured noise: an untrained classifier loses a few.
ASSUMED_LOSS = 1.0


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the noisy quadratic needs in addition to the spectrum.

    Attributes:
        noise: Noise levels σ², one number or one per eigenvalue.
        noise_source: ``"measured"``, ``"given"`` or ``"assumed"``.
        start: Initial errors, one number or one per eigenvalue.
        start_source: ``"measured"``, ``"given"`` or ``"assumed"``.
        measured_noise: The measurement behind ``noise``, at the batch size of the run; None if it is not measured.
        measured_start: The measurement behind ``start``, or None.
    """

    noise: float | Array
    noise_source: str
    start: float | Array
    start_source: str
    measured_noise: NoiseEstimate | None = None
    measured_start: StartEstimate | None = None

    @property
    def lines(self) -> tuple[str, str]:
        """A line about the noise and a line about the start; a command is in backticks."""
        return f"Noise: {self.noise_text}", f"Start: {self.start_text}"

    @property
    def noise_text(self) -> str:
        """The source and the value of the noise."""
        known = self.measured_noise
        if known is not None:
            law = "γ unknown" if math.isnan(known.exponent) else f"γ = {known.exponent:.2f}"
            return f"measured, σ² = {known.sigma2:.3g} (B = {known.batch_size}, {law})"
        remedy = "; measure it with `eigencurve estimate --noise`" if self.noise_source == "assumed" else ""
        return f"{self.noise_source}, σ² = {self.noise:,.6g}{remedy}"

    @property
    def start_text(self) -> str:
        """The source and the value of the start."""
        if self.measured_start is not None:
            return f"measured, excess loss {self.measured_start.loss:.3g} (from the {self.measured_start.source})"
        scaled = self.start_source == "assumed" and self.start != 1
        return f"{self.start_source}, initial error {self.start:,.3g} in every direction" + (
            f" (an excess loss of {ASSUMED_LOSS:g})" if scaled else ""
        )

    def fields(self) -> dict[str, Any]:
        """The inputs as plain values, ready for JSON."""
        noise: dict[str, Any] = {"source": self.noise_source}
        start: dict[str, Any] = {"source": self.start_source}
        if (known := self.measured_noise) is None:
            noise |= {"sigma2": self.noise}
        else:
            exponent = None if math.isnan(known.exponent) else known.exponent
            noise |= {"sigma2": known.sigma2, "batch_size": known.batch_size, "exponent": exponent}
        if self.measured_start is None:
            start |= {"value": self.start}
        else:
            start |= {"excess_loss": self.measured_start.loss}
        return {"noise": noise, "initial_error": start}


def inputs_of(
    subject: Subject, noise: float | None = None, initial_error: float | None = None, batch_size: int | None = None
) -> Inputs:
    """The noise and the start for a spectrum: given, or measured with the spectrum, or assumed.

    What is assumed has the scale of what is measured. Next to measured noise, the start has an excess loss of
    ``ASSUMED_LOSS``, spread evenly over all directions; otherwise its initial error is 1. The assumed σ² is
    ``ASSUMED_NOISE`` times the mean initial error.

    Args:
        subject: Spectrum, with the noise and the start of its file if they were measured.
        noise: Gradient noise σ² of every direction. With None, the measured one is used, or else assumed.
        initial_error: Initial error of every direction. With None, the measured one is used, or else assumed.
        batch_size: Batch size of the training run. With None, it is that of the measurement.

    Raises:
        ValueError: If ``batch_size`` is given but the noise is not measured, or is given too.
    """
    start, start_source, known_start = _start(subject, initial_error)
    if noise is not None:
        if batch_size is not None:
            _check.refuse("noise", "batch_size", "left out if the noise is given", batch_size)
        return Inputs(noise, "given", start, start_source, measured_start=known_start)
    if (known := subject.noise) is None:
        if batch_size is not None:
            remedy = "It rescales measured noise. Measure it with 'eigencurve estimate --noise', or give the noise."
            _check.refuse("noise", "batch_size", "left out if the file has no measured noise", batch_size, remedy)
        mean = float(subject.spectrum.weights @ start) if isinstance(start, np.ndarray) else start
        return Inputs(ASSUMED_NOISE * mean, "assumed", start, start_source, measured_start=known_start)
    known = known if batch_size is None else known.with_batch_size(batch_size)
    return Inputs(noise_levels(subject, known), "measured", start, start_source, known, known_start)


def quadratic_of(subject: Subject, inputs: Inputs, momentum: float = 0.0, nesterov: bool = False) -> NoisyQuadratic:
    """The noisy quadratic with the subject's spectrum."""
    return NoisyQuadratic(subject.spectrum, inputs.noise, inputs.start, momentum, nesterov)


def noise_levels(subject: Subject, noise: NoiseEstimate) -> Array:
    """Measured σ_j² of each eigenvalue, if the spectrum is prepared with another weight decay than it was measured for.

    The variance σ_j² λ_j of the noise does not depend on the weight decay in λ_j.
    """
    lam = subject.spectrum.eigenvalues
    then = lam + (noise.weight_decay - subject.weight_decay)
    return noise.levels(then) * then / lam


def start_errors(subject: Subject, start: StartEstimate) -> Array:
    """Measured λ_j Δ_j² of each eigenvalue; the displacement Δ_j does not depend on the weight decay in λ_j."""
    lam = subject.spectrum.eigenvalues
    then = lam + (start.weight_decay - subject.weight_decay)
    return start.errors(then) * lam / then


def _start(subject: Subject, given: float | None) -> tuple[float | Array, str, StartEstimate | None]:
    if given is not None:
        return given, "given", None
    if subject.start is not None:
        return start_errors(subject, subject.start), "measured", subject.start
    if subject.noise is None:
        return 1.0, "assumed", None
    return 2 * ASSUMED_LOSS / float(subject.noise.octaves.num_eigenvalues.sum()), "assumed", None
