"""Power-law spectra, fitted to a measured spectrum or assumed instead of one."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array
from eigencurve.spectrum.groups import require_positive
from eigencurve.spectrum.likelihood import exponent_and_error
from eigencurve.spectrum.spectrum import Spectrum

# A law that is further than this from the distribution of a spectrum does not describe it.
MISFIT = 0.1


@dataclass(frozen=True)
class PowerLaw:
    r"""Eigenvalues distributed as :math:`p(\lambda) \propto (\mu/\lambda)^\alpha` on [μ, L].

    Attributes:
        alpha: Exponent. Above 1, each octave has fewer eigenvalues than the one below it.
        mu: Smallest eigenvalue, above 0; about the weight decay.
        L: Largest eigenvalue, above mu.
        alpha_error: Standard error of a fitted alpha, otherwise None.
        distance: Kolmogorov distance (largest gap between the distribution functions) of a fitted law, otherwise None.

    Reference: arXiv:2110.14109, Eq. (power_law) in Corollary 1, which has α > 1; here α can be any real number.

    >>> law = PowerLaw(alpha=1.5, mu=5e-4, L=100.0)
    >>> round(float(law.cumulative(0.1)), 4)
    0.9314
    """

    alpha: float
    mu: float
    L: float
    alpha_error: float | None = field(default=None, compare=False)
    distance: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _check.real("PowerLaw", "alpha", self.alpha))
        object.__setattr__(self, "mu", _check.positive("PowerLaw", "mu", self.mu))
        object.__setattr__(self, "L", _check.real("PowerLaw", "L", self.L))
        if self.mu >= self.L:
            _check.refuse("PowerLaw", "L", f"> mu = {self.mu:g}", self.L)
        if self.L / np.finfo(np.float64).max > self.mu:
            _check.refuse("PowerLaw", "L", "small enough for L / mu to be finite", self.L)

    @property
    def kappa(self) -> float:
        """The condition number κ = L/μ."""
        return self.L / self.mu

    @property
    def warning(self) -> str:
        """A warning with its remedy if the law was fitted to a spectrum that it does not describe, else empty."""
        if self.distance is None or self.distance <= MISFIT:
            return ""
        return (
            f"No power law fits the spectrum: the one with exponent {self.alpha:.3g} is off by up to "
            f"{100 * self.distance:.0f} % of the eigenvalues. Build the schedule from the spectrum itself."
        )

    def cumulative(self, eigenvalues: float | Array) -> Array:
        r"""The share of eigenvalues up to λ.

        .. math:: F(\lambda) = \frac{1 - (\lambda/\mu)^{1-\alpha}}{1 - \kappa^{1-\alpha}}, \qquad
                  F = \frac{\ln(\lambda/\mu)}{\ln\kappa} \text{ for } \alpha = 1
        """
        x = np.log(np.clip(eigenvalues, self.mu, self.L) / self.mu)
        span, rate = math.log(self.kappa), self.alpha - 1
        if abs(rate) * span < 1e-12:
            share = x / span
        elif rate > 0:
            share = np.expm1(-rate * x) / math.expm1(-rate * span)
        else:  # the same ratio with numerator and denominator times exp(-|rate| span), which cannot overflow
            share = np.exp(-rate * (x - span)) * np.expm1(rate * x) / math.expm1(rate * span)
        # NumPy and math may round the same logarithm differently.
        return np.where(np.asarray(eigenvalues) < self.L, np.minimum(share, 1.0), 1.0)

    def spectrum(self, num: int = 1024, dim: int | None = None) -> Spectrum:
        """A spectrum of ``num`` eigenvalues, equally spaced in ln λ from mu to L, each with the share of its cell."""
        count = _check.whole("PowerLaw.spectrum", "num", num, minimum=2)
        eigenvalues = np.geomspace(self.mu, self.L, count)
        middles = np.sqrt(eigenvalues[1:] * eigenvalues[:-1])
        below = np.concatenate(([0.0], self.cumulative(middles), [1.0]))
        # Where F is flat, rounding may make it fall by the last digit.
        return Spectrum(eigenvalues, np.diff(np.maximum.accumulate(below)), dim)


def fit_power_law(spectrum: Spectrum) -> PowerLaw:
    """Fit a power law on the range [μ, L] of a spectrum, by maximum likelihood over α.

    See :func:`eigencurve.spectrum.likelihood.exponent_and_error`. The standard error assumes ``spectrum.dim``
    independent eigenvalues or, if the dimension is unknown, as many as there are nodes. ``distance`` measures how well
    the law fits.

    Raises:
        ValueError: The spectrum is not positive, or all or nearly all eigenvalues are equal.

    Warns:
        UserWarning: The law is further than 0.1 from the distribution of the spectrum, so its exponent means little.

    >>> law = fit_power_law(PowerLaw(1.5, 1e-3, 10.0).spectrum(num=2000))
    >>> round(law.alpha, 3)
    1.5
    """
    law = fitted_law(spectrum)
    if law.warning:
        warnings.warn(f"fit_power_law: {law.warning}", stacklevel=2)
    return law


def fitted_law(spectrum: Spectrum) -> PowerLaw:
    """The law of :func:`fit_power_law`, without its warning."""
    require_positive("fit_power_law", spectrum)
    count = len(spectrum) if spectrum.dim is None else spectrum.dim
    fitted = exponent_and_error(spectrum.eigenvalues, spectrum.weights, count)
    if fitted is None:
        remedy = "A single eigenvalue, or nearly equal ones, have no exponent."
        _check.refuse("fit_power_law", "spectrum", "spread between mu and L (kappa > 1)", spectrum, remedy)
    alpha, error = fitted
    law = PowerLaw(alpha, spectrum.mu, spectrum.L)
    after = np.cumsum(spectrum.weights)
    gap = np.abs(law.cumulative(spectrum.eigenvalues) - (after - spectrum.weights / 2)).max()
    return PowerLaw(alpha, spectrum.mu, spectrum.L, alpha_error=error, distance=float(gap))
