"""Maximum-likelihood exponent of a power law, from eigenvalues and weights."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from eigencurve._arrays import Array

# Beyond this value of |α - 1| ln κ the law is in practice a point mass, and exp would soon overflow.
STEEPEST = 500.0


def mean_height(rate: float, span: float) -> float:
    r"""Mean of x on [0, S] under a density proportional to :math:`e^{-ax}`, for any real a.

    .. math:: E_a[x] = \frac1a - \frac{S}{e^{aS} - 1}, \qquad E_0[x] = S/2
    """
    z = rate * span
    if abs(z) < 1e-4:
        return span * (0.5 - z / 12)
    if z > 700:
        return 1 / rate
    return 1 / rate - span / math.expm1(z)


def height_variance(rate: float, span: float) -> float:
    r"""Variance of x under the same density: :math:`1/a^2 - S^2 e^{aS}/(e^{aS}-1)^2`, and :math:`S^2/12` at a = 0."""
    z = abs(rate * span)
    if z < 1e-3:
        return span**2 * (1 / 12 - z**2 / 240)
    return (1 / rate) ** 2 - (span / (2 * math.sinh(z / 2))) ** 2 if z < 700 else (1 / rate) ** 2


def exponent_and_error(eigenvalues: Array, weights: Array, count: int) -> tuple[float, float] | None:
    r"""The maximum-likelihood α of :math:`p(\lambda) \propto \lambda^{-\alpha}` on [μ, L], and its standard error.

    For :math:`x = \ln(\lambda/\mu)` on :math:`[0, S]` with :math:`S = \ln\kappa`, the density is proportional to
    :math:`e^{-(\alpha-1)x}`. This is an exponential family: the likelihood is largest when the mean of x under the law
    equals the mean of x in the data, and the Fisher information is the variance of x. So n independent eigenvalues
    have the standard error

    .. math:: \Delta\alpha = \frac{1}{\sqrt{n\,\mathrm{Var}_\alpha[x]}}

    which does not measure how well a power law fits.

    Args:
        eigenvalues: Positive eigenvalues, in increasing order.
        weights: Share of each eigenvalue; sums to 1.
        count: Number n of independent eigenvalues.

    Returns:
        α and its standard error, or None if all or nearly all eigenvalues are equal.
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
