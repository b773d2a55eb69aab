"""SpectrumSource: a spectrum with all that a plan needs of it, and where each part comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array
from eigencurve._check import Arg
from eigencurve.spectrum.files import SpectrumFile, parse_spectrum, spectrum_suffix
from eigencurve.spectrum.measurement import MeasurementRecord
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.octaves import Octaves
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum, prepare
from eigencurve.spectrum.start import StartEstimate
from eigencurve.spectrum.zoo import ZOO, zoo_file

InputSource = Literal["given", "measured", "assumed"]
# The default smallest eigenvalue of an assumed power law: a common weight decay.
USUAL_DECAY = 5e-4
# Assumed σ², as a multiple of the mean initial error. Near a minimum of a cross-entropy loss, the covariance of one
# example's gradient is about the Hessian, so σ² is about 1/B. A start with excess loss l has a mean initial error of
# 2l/d. For B = 128 and l = 2.3 (ten classes, untrained), the ratio d/(2lB) is 460 for a ResNet-20 and 19,000 for a
# ResNet-18. At a ratio of 1, noise hardly matters, and every decay looks useless.
ASSUMED_NOISE = 1e4
# Assumed excess loss of the start in nats, next to measured noise: an untrained classifier loses a few.
ASSUMED_LOSS = 1.0
# The optimizers whose metric a spectrum may be measured in.
ADAPTIVE = ("adam", "adamw")


@dataclass(frozen=True)
class SpectrumSource:
    """A measured spectrum or an assumed power law, with its weight decay, gradient noise and start.

    Attributes:
        name: Name to show to people.
        raw: Spectrum as measured, before the weight decay is added; or the power law.
        weight_decay: Weight decay of the training run. A power law includes it in its smallest eigenvalue.
        measurement: How the spectrum was measured, if known.
        noise: Measured gradient noise, at the batch size of the run.
        start: Measured initial error of a run.
        about: The network and the data that the spectrum was measured on, if known.
        decay_source: ``"given"``, ``"measured"`` or ``"assumed"``.
        origin: ``"zoo"``, ``"file"``, or ``"memory"`` if only its numbers can recreate it.
        path: Path of the file.
        sigma2: Gradient noise σ² of every direction, if you give it in place of the measured one.
        initial_error: Initial error of every direction, if you give it in place of the measured one.
    """

    name: str
    raw: Spectrum | PowerLaw
    weight_decay: float
    measurement: MeasurementRecord | None = None
    noise: NoiseEstimate | None = None
    start: StartEstimate | None = None
    about: str = ""
    decay_source: InputSource = "given"
    origin: str = "memory"
    path: str = ""
    sigma2: float | None = None
    initial_error: float | None = None

    @property
    def is_law(self) -> bool:
        """Whether the spectrum is an assumed power law."""
        return isinstance(self.raw, PowerLaw)

    @cached_property
    def prepared(self) -> Spectrum | PowerLaw:
        """The prepared spectrum, or the power law: the input of a schedule."""
        return self.raw if isinstance(self.raw, PowerLaw) else prepare(self.raw, self.weight_decay)

    @cached_property
    def spectrum(self) -> Spectrum:
        """The prepared spectrum; a power law is sampled, because the theory needs single eigenvalues."""
        return self.prepared.spectrum() if isinstance(self.prepared, PowerLaw) else self.prepared

    @property
    def octaves(self) -> Octaves | None:
        """The measured octave shares with error bars, if they were measured for this weight decay."""
        record = self.measurement
        return record.octaves if record is not None and record.weight_decay == self.weight_decay else None

    @property
    def metric(self) -> str:
        """The optimizer in whose metric the spectrum was measured, such as ``"AdamW"``; empty for the Hessian."""
        return "" if self.measurement is None else self.measurement.preconditioner

    @property
    def optimizer(self) -> str:
        """The optimizer that the spectrum is for: Adam or AdamW if it was measured in their metric, else SGD."""
        name = self.metric.lower()
        return name if name in ADAPTIVE else "sgd"

    @property
    def fraction_negative(self) -> float:
        """The share of eigenvalues that were measured negative."""
        if isinstance(self.raw, PowerLaw):
            return 0.0
        return float(self.raw.weights[self.raw.eigenvalues < 0].sum())

    @property
    def negative_text(self) -> str:
        """The share of the curvature that was measured negative, to append to a line; empty if there is none."""
        share = 0.0 if isinstance(self.raw, PowerLaw) else self.raw.negative_share
        shown = "<1 %" if share < 0.01 else f"{100 * share:.0f} %"
        return f", {shown} of the curvature negative" if share > 0 else ""

    @property
    def heading(self) -> str:
        """The name, the weight decay, and the share of the curvature that was measured negative."""
        return f"{self.name}, weight decay {self.weight_decay:g}{self.negative_text}"

    @property
    def noise_source(self) -> InputSource:
        """Where the noise comes from: ``"given"``, ``"measured"`` or ``"assumed"``."""
        return "given" if self.sigma2 is not None else "assumed" if self.noise is None else "measured"

    @property
    def start_source(self) -> InputSource:
        """Where the initial error comes from: ``"given"``, ``"measured"`` or ``"assumed"``."""
        return "given" if self.initial_error is not None else "assumed" if self.start is None else "measured"

    @cached_property
    def noise_levels(self) -> float | Array:
        """Gradient noise σ²: one number, or measured ones for every eigenvalue.

        The variance σ_j² λ_j of measured noise does not depend on the weight decay in λ_j.
        """
        if self.sigma2 is not None:
            return self.sigma2
        if self.noise is None:
            start = self.initial_errors
            return ASSUMED_NOISE * (float(self.spectrum.weights @ start) if isinstance(start, np.ndarray) else start)
        measured_at = self.spectrum.eigenvalues + (self.noise.weight_decay - self.weight_decay)
        return self.noise.levels(measured_at) * measured_at / self.spectrum.eigenvalues

    @cached_property
    def initial_errors(self) -> float | Array:
        """Initial error λΔ²: one number, or measured ones for every eigenvalue.

        The displacement Δ_j of a measured start does not depend on the weight decay in λ_j. Next to measured noise, an
        assumed start has an excess loss of ``ASSUMED_LOSS``, spread evenly over all directions.
        """
        if self.initial_error is not None:
            return self.initial_error
        if self.start is not None:
            measured_at = self.spectrum.eigenvalues + (self.start.weight_decay - self.weight_decay)
            return self.start.errors(measured_at) * self.spectrum.eigenvalues / measured_at
        if self.noise is None:
            return 1.0
        return 2 * ASSUMED_LOSS / float(self.noise.octaves.num_eigenvalues.sum())

    @property
    def noise_text(self) -> str:
        """The value of the noise."""
        noise = self.noise
        if self.noise_source != "measured" or noise is None:
            return f"σ² = {self.noise_levels:,.6g}"
        law = "γ unknown" if math.isnan(noise.exponent) else f"γ = {noise.exponent:.2f}"
        return f"σ² = {noise.sigma2:.3g} (B = {noise.batch_size}, {law})"

    @property
    def start_text(self) -> str:
        """The value of the initial error."""
        if self.start_source == "measured" and self.start is not None:
            return f"excess loss {self.start.loss:.3g} (from the {self.start.source})"
        scaled = self.start_source == "assumed" and self.initial_errors != 1
        loss = f" (an excess loss of {ASSUMED_LOSS:g})" if scaled else ""
        return f"initial error {self.initial_errors:,.3g} in every direction{loss}"

    def __repr__(self) -> str:
        return f"SpectrumSource({self.name!r}, {self.raw!r}, weight_decay={self.weight_decay:g})"


def zoo_source(name: str, weight_decay: float | None = None) -> SpectrumSource:
    """A spectrum of the zoo. The weight decay defaults to the one it was measured with."""
    file, entry = _zoo_file(name), ZOO[name]
    decay = entry.weight_decay if weight_decay is None else weight_decay
    origin: InputSource = "measured" if weight_decay is None else "given"
    about = f"{entry.network}; {entry.data}"
    return SpectrumSource(
        name, file.spectrum, decay, file.measurement, file.noise, file.start, about, decay_source=origin, origin="zoo"
    )


def file_source(path: Path, weight_decay: float | None = None) -> SpectrumSource:
    """A spectrum from a file; see :func:`bytes_source` for the default weight decay."""
    suffix = spectrum_suffix("load_spectrum", path)
    source = bytes_source(path.read_bytes(), suffix, str(path), weight_decay)
    return replace(source, name=path.stem, origin="file", path=str(path))


def bytes_source(content: bytes, suffix: str, name: str, weight_decay: float | None = None) -> SpectrumSource:
    """A spectrum from the bytes of a file with the ending ``suffix``.

    Without ``weight_decay``, the file's own is used; if it has none, the eigenvalues must be positive.
    """
    file = parse_spectrum(content, suffix, Path(name))
    decay, origin = _decay(file, weight_decay)
    return SpectrumSource(name, file.spectrum, decay, file.measurement, file.noise, file.start, decay_source=origin)


def law_source(alpha: float, kappa: float, weight_decay: float | None = None) -> SpectrumSource:
    """A power law with condition number ``kappa``. Its smallest eigenvalue is the weight decay."""
    decay = _check.positive("power law", "weight_decay", USUAL_DECAY if weight_decay is None else weight_decay)
    law = PowerLaw(alpha=alpha, mu=decay, L=_check.real("power law", "kappa", kappa) * decay)
    origin: InputSource = "assumed" if weight_decay is None else "given"
    name = f"power law, exponent {law.alpha:g}, condition number {law.kappa:g}"
    return SpectrumSource(name, law, decay, decay_source=origin)


def with_inputs(
    source: SpectrumSource,
    noise: float | NoiseEstimate | None = None,
    initial_error: float | StartEstimate | None = None,
    batch_size: int | None = None,
) -> SpectrumSource:
    """``source`` with the noise and the start of a run; None keeps the measured ones, or else those that are assumed.

    Args:
        source: Spectrum.
        noise: Gradient noise σ² of every direction, or a measurement.
        initial_error: Initial error of every direction, or a measurement.
        batch_size: Batch size of the run. By default that of the measured noise.

    Raises:
        ValueError: ``batch_size`` is given but the noise is not measured, or is given too.
    """
    measured = noise if isinstance(noise, NoiseEstimate) else source.noise
    start = initial_error if isinstance(initial_error, StartEstimate) else source.start
    sigma2 = source.sigma2 if noise is None else _number("noise", noise, NoiseEstimate)
    error = source.initial_error if initial_error is None else _number("initial_error", initial_error, StartEstimate)
    if batch_size is not None and sigma2 is not None:
        _check.refuse("plan", "batch_size", "left out if the noise is given", batch_size)
    if batch_size is not None and measured is None:
        remedy = ("It rescales measured noise. Measure it with `eigencurve estimate --noise`, or give ", Arg("noise"))
        constraint = "left out if the spectrum has no measured noise"
        _check.refuse("plan", "batch_size", constraint, batch_size, (*remedy, "."))
    if measured is not None and batch_size is not None:
        measured = measured.with_batch_size(batch_size)
    return replace(source, noise=measured, start=start, sigma2=sigma2, initial_error=error)


def input_lines(source: SpectrumSource) -> tuple[str, str]:
    r"""A line about the noise and a line about the start; a command is in backticks.

    >>> print(*input_lines(law_source(alpha=1.5, kappa=1e4)), sep="\n")
    Noise: assumed, σ² = 10,000; measure it with `eigencurve estimate --noise`
    Start: assumed, initial error 1 in every direction
    """
    remedy = "; measure it with `eigencurve estimate --noise`" if source.noise_source == "assumed" else ""
    return (
        f"Noise: {source.noise_source}, {source.noise_text}{remedy}",
        f"Start: {source.start_source}, {source.start_text}",
    )


def input_fields(source: SpectrumSource) -> dict[str, Any]:
    """The noise and the start as plain values, ready for JSON."""
    noise: dict[str, Any] = {"source": source.noise_source, "sigma2": source.noise_levels}
    start: dict[str, Any] = {"source": source.start_source, "value": source.initial_errors}
    if source.noise_source == "measured" and source.noise is not None:
        exponent = None if math.isnan(source.noise.exponent) else source.noise.exponent
        noise |= {"sigma2": source.noise.sigma2, "batch_size": source.noise.batch_size, "exponent": exponent}
    if source.start_source == "measured" and source.start is not None:
        start = {"source": "measured", "excess_loss": source.start.loss}
    return {"noise": noise, "initial_error": start}


def _number(name: str, value: Any, estimate: type) -> float | None:
    """A given number; None for an estimate."""
    return None if isinstance(value, estimate) else _check.at_least("plan", name, value, 0.0)


@cache
def _zoo_file(name: str) -> SpectrumFile:
    """A spectrum of the zoo, read from its file once per process."""
    return zoo_file(name)


def _decay(file: SpectrumFile, weight_decay: float | None) -> tuple[float, InputSource]:
    """The weight decay, and where it comes from."""
    if weight_decay is not None:
        return _check.at_least("prepare", "weight_decay", weight_decay, 0.0), "given"
    if file.measurement is not None:
        return file.measurement.weight_decay, "measured"
    if file.spectrum.mu <= 0:
        remedy = "Its smallest eigenvalue is not positive, so a schedule needs the weight decay of the training run."
        _check.refuse("prepare", "weight_decay", "given for this spectrum", None, remedy)
    return 0.0, "assumed"
