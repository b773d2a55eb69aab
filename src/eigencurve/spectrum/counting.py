r"""Eigenvalues that can be counted: converged, isolated Gauss nodes, each of which is one eigenvalue.

With one random probe, the weight of a single eigenvalue is 1/d times a :math:`\chi^2_1` variable, which is below 0.1 or
above 2.7 in a third of all cases. But a Ritz value that has converged to an isolated eigenvalue *is* that eigenvalue,
so its weight in the density is exactly 1/d. Only the rest of the spectrum has to be weighted by the probe. This is
the deflation of Chen and Hallman, "Krylov-aware stochastic trace estimation", arXiv:2205.01736.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from eigencurve._arrays import Array

BoolArray: TypeAlias = NDArray[np.bool_]

# Largest residual of a counted node, relative to the gap to its neighbours.
RESIDUAL_PER_GAP = 0.01
# Largest weight of a counted node, as a multiple of 1/d. A single eigenvalue exceeds it with probability 1e-5. A
# cluster of more than about 40 eigenvalues that Lanczos cannot resolve nearly always exceeds it.
MAX_WEIGHT = 20.0


def counted_nodes(nodes: Array, weights: Array, residuals: Array, dim: int) -> BoolArray:
    r"""Which Gauss nodes are single eigenvalues.

    Node θ_i is counted if there is an eigenvalue within 1 % of the gap to its nearest neighbour, which the residual
    guarantees, and if its weight is plausible for a single eigenvalue:

    .. math:: r_i \le 0.01\, \min_{j \ne i} |\theta_i - \theta_j|, \qquad w_i d \le 20

    where rounding is the least residual, so two copies of one eigenvalue are not counted twice.

    No node is counted if all of them satisfy this but there are fewer nodes than dimensions: some eigenvalue is then
    multiple, and the weights are the only information about which one.

    Args:
        nodes: Gauss nodes θ in ascending order.
        weights: Their weights w, which sum to 1.
        residuals: Norm r of the residual of each Ritz pair.
        dim: Number of eigenvalues d.
    """
    gaps = np.concatenate(([np.inf], np.diff(nodes), [np.inf]))
    errors = np.maximum(residuals, np.finfo(np.float64).eps * np.abs(nodes).max())
    isolated = errors <= RESIDUAL_PER_GAP * np.minimum(gaps[:-1], gaps[1:])
    counted: BoolArray = isolated & (weights * dim <= MAX_WEIGHT)
    return np.zeros_like(counted) if counted.all() and len(nodes) < dim else counted


def nearest_nodes(nodes: Array, eigenvalues: Array) -> BoolArray:
    """Which of the sorted ``nodes`` are the nearest ones to known eigenvalues."""
    middles = nodes[1:] / 2 + nodes[:-1] / 2
    is_nearest = np.zeros(len(nodes), dtype=bool)
    is_nearest[np.searchsorted(middles, eigenvalues, side="right")] = True
    return is_nearest


def recounted(weights: Array, counted: BoolArray, dim: int) -> Array:
    """Weights with 1/d for each counted eigenvalue; the others are rescaled to the remaining mass."""
    share = counted.sum() / dim
    rest = float(weights[~counted].sum())
    scaled = weights * ((1 - share) / rest if rest > 0 else 0.0)
    return np.where(counted, 1 / dim, scaled)
