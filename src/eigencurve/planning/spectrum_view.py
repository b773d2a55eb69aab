"""A spectrum as numbers to draw: shares per octave, the negative part, and a smooth density."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eigencurve._arrays import Array
from eigencurve.spectrum.groups import extra_term, group, log_density, octave_index
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.source import SpectrumSource
from eigencurve.spectrum.spectrum import Spectrum


@dataclass(frozen=True, eq=False)
class SpectrumView:
    """A prepared spectrum, |λ| + weight decay, as numbers to draw.

    Attributes:
        mu, L: Smallest and largest eigenvalue.
        num_nodes: Number of eigenvalues that represent the spectrum.
        dim: Number of parameters of the model, if known.
        fraction_negative: Share of eigenvalues that were measured negative.
        extra_term: (Σ √s_i)²/d for β = 2.
        lower: Lower edges of the octaves from μ to L, without gaps.
        positive, negative: Share of each octave that was measured positive and negative.
        curve: Eigenvalues at which ``density`` is given.
        density: Smooth share per octave at ``curve``.
    """

    mu: float
    L: float
    num_nodes: int
    dim: int | None
    fraction_negative: float
    extra_term: float
    lower: Array
    positive: Array
    negative: Array
    curve: Array
    density: Array

    @property
    def kappa(self) -> float:
        """The condition number L/μ."""
        return self.L / self.mu


def spectrum_view(subject: SpectrumSource) -> SpectrumView:
    """Compute what a figure of the subject's spectrum shows."""
    spectrum = subject.spectrum
    lower, positive, negative = _octave_shares(subject)
    curve, density = _smooth(subject.prepared)
    return SpectrumView(
        mu=spectrum.mu,
        L=spectrum.L,
        num_nodes=len(spectrum),
        dim=spectrum.dim,
        fraction_negative=subject.fraction_negative,
        extra_term=extra_term(subject.prepared),
        lower=lower,
        positive=positive,
        negative=negative,
        curve=curve,
        density=density,
    )


def _octave_shares(subject: SpectrumSource) -> tuple[Array, Array, Array]:
    """Lower edges of the octaves from μ to L, and the share of positive and of negative eigenvalues in each."""
    spectrum = subject.spectrum
    num = 1 + int(octave_index(spectrum.L, spectrum.mu))
    lower = np.asarray(spectrum.mu * 2.0 ** np.arange(num), dtype=np.float64)
    total = np.zeros(num)
    groups = group(subject.prepared, beta=2.0)
    total[groups.index] = groups.share
    if isinstance(subject.raw, PowerLaw):
        return lower, total, np.zeros(num)
    below = subject.raw.eigenvalues < 0
    index = octave_index(np.abs(subject.raw.eigenvalues[below]) + subject.weight_decay, spectrum.mu)
    negative = np.bincount(index, subject.raw.weights[below], num).astype(np.float64)
    return lower, np.maximum(total - negative, 0.0), negative


def _smooth(prepared: Spectrum | PowerLaw) -> tuple[Array, Array]:
    """Eigenvalues at eight points per octave, and the smooth share per octave there."""
    density = log_density(prepared)
    u = np.linspace(density.edges[0], density.edges[-1], 2 * len(density.edges))
    return np.exp(u), math.log(2) * density(u)
