"""The interval lengths Δ_i that minimise Lemma 1's variance bound, with a certificate of optimality."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eigencurve import PowerLaw, Spectrum
from eigencurve.schedules.allocation import optimal_allocation, sqrt_allocation, variance_term
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.spectrum.groups import Groups, group
from paper.arrays import Array


@dataclass(frozen=True, eq=False)
class Allocation:
    r"""Interval lengths for the groups of a spectrum, and how far from optimal they are.

    Attributes:
        groups: Non-empty groups of the spectrum.
        slope: Slope :math:`a_i = \beta^i/\kappa` of the denominator on group i.
        lengths: Interval lengths Δ_i >= 0 of the groups; they sum to T.
        value: The sum :math:`V(\Delta) = \sum_i a_i s_i / D_i` in Lemma 1's variance.
        kkt_residual: Violation of the optimality conditions (:func:`kkt_residual`); 0 at the optimum.
        gap: Upper bound on the relative decrease of V that other lengths could achieve.
    """

    groups: Groups
    slope: Array
    lengths: Array
    value: float
    kkt_residual: float
    gap: float


def allocate(
    spectrum: Spectrum | PowerLaw, total_steps: int, beta: float = 2.0, allocation: str = "optimal"
) -> Allocation:
    r"""Divide T steps among the groups of ``spectrum``.

    .. math:: \min_{\Delta \ge 0,\, \sum\Delta = T} V(\Delta), \qquad
              V(\Delta) = \sum_i \frac{a_i s_i}{1 + \sum_{j \le i} a_j\Delta_j}

    V is convex, so the Karush-Kuhn-Tucker conditions, which are checked, prove that the minimum is global.

    Args:
        spectrum: Positive spectrum, from :func:`prepare`, or a power law.
        total_steps: Number of steps T.
        beta: Ratio of the groups' lower edges, above 1.
        allocation: ``"optimal"``, or ``"sqrt"`` for the paper's Δ_i ∝ √s_i.

    Reference: arXiv:2110.14109, Lemma 1, and the remark that "a better allocation can be calculated".

    >>> a = allocate(Spectrum([1.0, 2.0, 4.0], [4, 2, 1]), total_steps=700)
    >>> a.lengths.round(2), a.kkt_residual < 1e-12
    (array([579.21, 120.79,   0.  ]), True)
    """
    groups = group(spectrum, beta)
    slope = groups.lower / spectrum.L
    best = allocation == "optimal"
    lengths = (
        optimal_allocation(groups.share, slope, total_steps) if best else sqrt_allocation(groups.share, total_steps)
    )
    value = variance_term(groups.share, slope, lengths)
    pull = marginal_gain(groups.share, slope, lengths)
    gap = (total_steps * float(pull.max()) - float(pull @ lengths)) / value
    return Allocation(groups, slope, lengths, value, kkt_residual(pull, lengths), gap)


def marginal_gain(share: Array, slope: Array, lengths: Array) -> Array:
    r"""The decrease of V per additional step in each group.

    .. math:: -\frac{\partial V}{\partial\Delta_i} = a_i\sum_{k \ge i} \frac{a_k s_k}{D_k^2}
    """
    denominator = 1 + np.cumsum(slope * lengths)
    return np.asarray(slope * np.cumsum((slope * share / denominator**2)[::-1])[::-1])


def kkt_residual(gain: Array, lengths: Array) -> float:
    r"""The violation of the optimality conditions by the gains :math:`g_i`, as a fraction of :math:`\nu T`.

    .. math:: g_i \le \nu, \qquad \Delta_i\,(\nu - g_i) = 0

    With :math:`\nu = \max_i g_i` the first condition holds; the residual is the largest left side of the second.
    """
    best = float(gain.max())
    return float((lengths * (best - gain)).max()) / (best * math.fsum(lengths))


def schedule_for(spectrum: Spectrum | PowerLaw, lengths: Array, beta: float = 2.0) -> Eigencurve:
    """The schedule of Lemma 1, with initial rate 1/L, for any lengths Δ_i of the non-empty groups.

    The lengths must sum to a whole number of steps. A length below the rounding error of T gets no interval.
    """
    slope = group(spectrum, beta).lower / spectrum.L
    total = round(math.fsum(lengths))
    times = np.minimum(np.concatenate(([0.0], np.cumsum(lengths))), total)
    heights = 1 + np.concatenate(([0.0], np.cumsum(lengths * slope)))
    inner = np.concatenate((np.diff(times) > 0, [False])) & (times < total)
    return Eigencurve(total, 1 / spectrum.L, np.append(times[inner], total), np.append(heights[inner], heights[-1]))
