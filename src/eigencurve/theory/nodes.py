"""The coordinates of a noisy quadratic as arrays, and a compressed set of them with nearly the same loss."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from eigencurve._arrays import Array, IntArray
from eigencurve.spectrum.groups import EDGE_TOLERANCE, group, octave_index
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.theory import kernels, momentum_kernels
from eigencurve.theory.kernels import Problem
from eigencurve.theory.stability import largest_stable_rate

# Two nodes per cell: about 128 in all.
NUM_CELLS = 64
# Relative width of the cells next to L.
NARROWEST = 1e-3


@dataclass(frozen=True, eq=False)
class Nodes:
    r"""The coordinates of a noisy quadratic that have a positive share; the others add nothing to the loss.

    Attributes:
        lam: Eigenvalues λ_j, increasing.
        weights: Share of each eigenvalue; they sum to 1.
        error: Initial errors e_j = λ_j (w_0j - w_*j)².
        noise: Noise levels σ_j².
        momentum: Momentum m of SGD.
        nesterov: Whether it is Nesterov momentum; otherwise heavy ball.
        noise_power: Power p of the rate in the noise: in a step at rate η its level is σ_j² η^p.
    """

    lam: Array
    weights: Array
    error: Array
    noise: Array
    momentum: float
    nesterov: bool = False
    noise_power: float = 0.0

    def __len__(self) -> int:
        return len(self.lam)

    @property
    def stable_rate(self) -> float:
        """The largest constant rate at which no error grows."""
        return largest_stable_rate(float(self.lam[-1]), self.momentum, self.nesterov)

    @property
    def inertia(self) -> float:
        """How far one gradient moves w in the long run, relative to plain SGD at the same fraction of the limit."""
        return 0.5 * self.stable_rate * float(self.lam[-1]) / (1 - self.momentum)

    @property
    def kernels(self) -> ModuleType:
        """The compiled loops for these coordinates."""
        return momentum_kernels if self.momentum else kernels

    def problem(self, part: slice = slice(None)) -> Problem:
        """The arguments of the compiled loops: writable copies of the arrays of some nodes."""
        lam, weights, error, noise = (
            values[part].copy() for values in (self.lam, self.weights, self.error, self.noise)
        )
        return Problem(lam, weights, error, noise, self.momentum, self.nesterov, self.noise_power)

    def state_of(self, errors: Array | float) -> Array:
        """The state of the compiled loops that has these errors; with momentum, its other moments are 0."""
        state = np.zeros((self.kernels.NUM_MOMENTS, len(self)))
        state[0] = errors
        return state


def octave_of(spectrum: Spectrum, nodes: Nodes) -> tuple[IntArray, Array, IntArray]:
    """Index and lower edge of each non-empty octave [μ 2^i, μ 2^(i+1)), and the octave that each node is in."""
    groups = group(spectrum, beta=2.0)
    return groups.index, groups.lower, np.searchsorted(groups.index, octave_index(nodes.lam, spectrum.mu))


def compress(nodes: Nodes, num_cells: int = NUM_CELLS) -> Nodes:
    r"""Replace the nodes in each of ``num_cells`` cells of ln λ by a two-point Gauss rule.

    The rule preserves the moments of λ up to the third, so if the loss is smooth over a cell, it changes by the
    fourth power of the cell's width. Noise and initial error become the means of the cell. Use compressed nodes to
    try many schedules, and all nodes for the loss you report.

    The cells have equal width in :math:`\ln\lambda - \ln(1.001 - \lambda/L)`. This is ln λ, except near L, where the
    cells are narrower: at rates up to 2/L the variance goes as :math:`1/(2-\eta\lambda)`, which is not smooth in ln λ.
    """
    if len(nodes) <= 2 * num_cells:
        return nodes
    height = np.log(nodes.lam / nodes.lam[0]) - np.log1p(NARROWEST - nodes.lam / nodes.lam[-1])
    height = (height - height[0]) / max(float(height[-1] - height[0]), EDGE_TOLERANCE)
    cell = np.minimum((height * num_cells).astype(np.int64), num_cells - 1)
    used, place = np.unique(cell, return_inverse=True)
    total = np.bincount(place, nodes.weights)
    error = np.bincount(place, nodes.weights * nodes.error) / total
    noise = np.bincount(place, nodes.weights * nodes.noise) / total
    rules = [_gauss_pair(nodes.lam[place == i], nodes.weights[place == i]) for i in range(len(used))]
    owner = np.repeat(np.arange(len(used)), [len(points) for points, _ in rules])
    points = np.concatenate([points for points, _ in rules])
    weights = np.concatenate([weights for _, weights in rules])
    return replace(nodes, lam=points, weights=weights, error=error[owner], noise=noise[owner])


def _gauss_pair(points: Array, weights: Array) -> tuple[Array, Array]:
    r"""The two-point Gauss rule: points :math:`\bar\lambda + z`, with z the roots of :math:`z^2 - sz - v`.

    v is the variance of the points, and s is their third central moment divided by v.
    """
    total = float(weights.sum())
    mean = float(weights @ points) / total
    offset = points - mean
    variance = float(weights @ offset**2) / total
    if len(points) <= 2:
        return points, weights
    if variance <= (1e-8 * mean) ** 2:
        return np.array([mean]), np.array([total])
    half = float(weights @ offset**3) / (2 * total * variance)
    root = math.sqrt(half * half + variance)
    low, high = half - root, half + root
    return mean + np.array([low, high]), total * np.array([high, -low]) / (high - low)
