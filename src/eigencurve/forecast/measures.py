"""The loss of a schedule as a sum over λ: how much of the initial error is left, and how much noise has come in."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eigencurve._arrays import Array, IntArray, frozen
from eigencurve.forecast.runs import tabulated
from eigencurve.schedules.base import Schedule
from eigencurve.theory.nodes import Nodes
from eigencurve.theory.recursion import states

# The largest λ, in units of one over the largest logged rate: noise that one or two steps forget.
LARGEST = 0.5
# Distance of neighbouring nodes in ln λ. The measures are smooth, so a finer grid changes nothing.
SPACING = 0.4
# Error that decays this much more slowly than the longest run counts as part of the final loss.
SLOWEST_ERROR = 1e-3
# Noise that takes longer to build up than the longest run cannot be told from the final loss.
SLOWEST_NOISE = 1.2
# The noise of a step at the relative rate r is r^(2 - NOISE_SHARE γ) λ.
NOISE_SHARE = 1.5


@dataclass(frozen=True, eq=False)
class Grid:
    """The nodes λ of both measures, in units of one over the reference rate.

    Attributes:
        lam: Nodes, increasing and evenly spaced in ln λ.
        first_noisy: Index of the first node that has noise.
    """

    lam: Array
    first_noisy: int

    @property
    def noisy(self) -> Array:
        """The nodes that have noise."""
        return self.lam[self.first_noisy :]


def grid_for(travel: float) -> Grid:
    """The grid for runs whose relative rates sum to at most ``travel``."""
    count = 1 + math.ceil(math.log(LARGEST * travel / SLOWEST_ERROR) / SPACING)
    lam = LARGEST * np.exp(-SPACING * np.arange(count)[::-1])
    first = min(int(np.searchsorted(lam, SLOWEST_NOISE / travel)), count - 3)
    return Grid(frozen(lam), first)


def effective_schedule(schedule: Schedule, reference: float, gamma: float) -> Schedule:
    r"""The rates that the quadratic model sees, :math:`(\eta/\eta_0)^{1-\gamma}`."""
    return tabulated((schedule.values() / reference) ** (1 - gamma))


def noise_power(gamma: float) -> float:
    r"""The exponent p for which :math:`\tilde\eta^{2+p} = r^{2-1.5\gamma}`, with :math:`\tilde\eta = r^{1-\gamma}`."""
    return (2 - NOISE_SHARE) * gamma / (1 - gamma)


def responses(grid: Grid, effective: Schedule, gamma: float, marks: IntArray) -> tuple[Array, Array]:
    r"""What unit measures contribute to the loss after each of ``marks`` steps.

    .. math:: B_j = \prod_t (1-\tilde\eta_t\lambda_j)^2, \qquad
              V_j \leftarrow (1-\tilde\eta_t\lambda_j)^2 V_j + \tilde\eta_t^{2+p}\lambda_j

    Returns:
        B at every node and V at the noisy nodes: one row per mark.
    """
    count = len(grid.lam)
    nodes = Nodes(
        grid.lam, np.full(count, 1 / count), np.ones(count), 1 / grid.lam, 0.0, noise_power=noise_power(gamma)
    )
    pairs = [(bias.copy(), variance[grid.first_noisy :].copy()) for bias, variance in states(nodes, effective, marks)]
    return np.array([bias for bias, _ in pairs]), np.array([variance for _, variance in pairs])
