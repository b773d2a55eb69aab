"""Results of the noise study of one network, and the numbers that its page derives from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eigencurve.hessian import log_curve
from eigencurve.spectrum.files import SpectrumFile
from eigencurve.spectrum.noise import NoiseEstimate
from paper.arrays import Array
from paper.studies.noise_measuring import OWN, PLAIN, Measuring, usual
from paper.studies.noise_training import END, MOMENTS, Subject

# An octave counts if the relative standard error of its noise is below this.
ENOUGH_SIGNAL = 0.5
# In the lowest octave most of |λ| + weight decay is weight decay, so σ² is no property of H there.
EDGE = 1.5
FEWEST = 3
METRIC_WORDS = {PLAIN: "", OWN: ", in AdamW's metric"}


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
    found: Mapping[Measuring, Measured]  # results of each measurement

    @property
    def metrics(self) -> list[str]:
        """``"plain"`` and, for an adaptive optimizer, ``"own"``."""
        return list(dict.fromkeys(how.metric for how in self.found))

    def moments(self, metric: str) -> dict[str, Measured]:
        """The results of the first probe in one metric, by moment."""
        wanted = {moment: usual(self.subject, moment, metric) for moment in MOMENTS}
        return {moment: self.found[how] for moment, how in wanted.items() if how in self.found}

    def other_probe(self, metric: str) -> Measured | None:
        """The end, measured from another probe."""
        return self.found.get(usual(self.subject, END, metric, probe=1))

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
