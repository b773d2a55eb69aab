"""The exponent of a power law by maximum likelihood, from eigenvalues and weights."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from eigencurve._arrays import Array

# Exponents beyond this are a point mass for every purpose, and exp would overflow on the way to them.
STEEPEST = 500.0


def mean_height(rate: float, span: float) -> float:
    r"""Mean of x on [0, span] under a density proportional to :math:`e^{-ax}`, for any real a.

    .. math:: E_a[x] = \frac1a - \frac{S}{e^{aS} - 1}, \qquad E_0[x] = S/2
    """
    z = rate * span
    if abs(z) < 1e-4:
        return span * (0.5 - z / 12)
    if z > 700:
        return 1 / rate
    return 1 / rate - span / math.expm1(z)


def height_variance(rate: float, span: float) -> float:
    r"""Variance of the same x: :math:`1/a^2 - S^2 e^{aS}/(e^{aS}-1)^2`, and :math:`S^2/12` at a = 0."""
    z = abs(rate * span)
    if z < 1e-3:
        return span**2 * (1 / 12 - z**2 / 240)
    return (1 / rate) ** 2 - (span / (2 * math.sinh(z / 2))) ** 2 if z < 700 else (1 / rate) ** 2


def exponent_and_error(eigenvalues: Array, weights: Array, count: int) -> tuple[float, float] | None:
    r"""The α that makes the eigenvalues likeliest under :math:`p(\lambda) \propto \lambda^{-\alpha}` on [μ, L].

    With :math:`x = \ln(\lambda/\mu)` on :math:`[0, S]`, :math:`S = \ln\kappa`, the density of x is proportional
    to :math:`e^{-(\alpha-1)x}`: an exponential family, whose likelihood is largest where the mean of x under the
    law is the mean of x in the data, and whose Fisher information is the variance of x. Hence the error

    .. math:: \Delta\alpha = \frac{1}{\sqrt{n\,\mathrm{Var}_\alpha[x]}}

    of n independent eigenvalues. It says nothing of how well a power law fits. None where there is no such α:
    all eigenvalues, or nearly all, are equal.
    """
    heights = np.log(eigenvalues / eigenvalues[0])
    span, mean = float(heights[-1]), float(weights @ heights)
    if span <= 0:
        return None
    steepest = STEEPEST / span
    if not mean_height(steepest, span) < mean < mean_height(-steepest, span):
        return None
    rate = float(brentq(lambda a: mean_height(a, span) - mean, -steepest, steepest, xtol=1e-14, rtol=1e-13))
    return 1 + rate, 1 / math.sqrt(count * height_variance(rate, span))
