"""The coordinates of a noisy quadratic as the loops see them, and fewer of them that give the same loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eigencurve._arrays import Array, IntArray
from eigencurve.spectrum.groups import EDGE_TOLERANCE, group, octave_index
from eigencurve.spectrum.spectrum import Spectrum

# Two nodes in each cell: about 128 in all.
NUM_CELLS = 64
# The cells next to L are about this part of it wide.
NARROWEST = 1e-3


@dataclass(frozen=True, eq=False)
class Nodes:
    r"""Coordinates with a share above zero; those without one add nothing to the loss.

    Attributes:
        lam: eigenvalues λ_j, increasing.
        weights: the share of each, summing to 1.
        error: λ_j (w_0j - w_*j)², the initial errors e_j.
        noise: σ_j².
        momentum: m of the heavy ball.
    """

    lam: Array
    weights: Array
    error: Array
    noise: Array
    momentum: float

    def __len__(self) -> int:
        return len(self.lam)


def nodes_of(spectrum: Spectrum, noise: Array, error: Array, momentum: float) -> Nodes:
    """The eigenvalues of ``spectrum`` that have a share, with their noise and initial error."""
    used = spectrum.weights > 0
    return Nodes(spectrum.eigenvalues[used], spectrum.weights[used], error[used], noise[used], momentum)


def octave_of(spectrum: Spectrum, nodes: Nodes) -> tuple[IntArray, Array, IntArray]:
    """Index and lower edge of the non-empty octaves [μ 2^i, μ 2^(i+1)), and which of them each node lies in."""
    groups = group(spectrum, beta=2.0)
    return groups.index, groups.lower, np.searchsorted(groups.index, octave_index(nodes.lam, spectrum.mu))


def compress(nodes: Nodes, num_cells: int = NUM_CELLS) -> Nodes:
    r"""At most two nodes for each of ``num_cells`` cells of ln λ: the Gauss rule of the cell's weights.

    The rule keeps the weights' moments of λ up to the third, so a loss that is smooth over a cell changes by the
    fourth power of the cell's width. It serves where many schedules are tried; what is reported is computed on
    all nodes. Noise and initial error become the cell's means.

    The cells are equal in :math:`\ln\lambda - \ln(1.001 - \lambda/L)`: in ln λ, but narrower near L, where at rates up
    to 2/L the variance goes as :math:`1/(2-\eta\lambda)`, which is not smooth in ln λ.
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
    return Nodes(points, weights, error[owner], noise[owner], nodes.momentum)


def _gauss_pair(points: Array, weights: Array) -> tuple[Array, Array]:
    r"""The two-point Gauss rule: points :math:`\bar\lambda + z`, z the roots of :math:`z^2 - sz - v`.

    v is the variance of the points and s their third central moment over v.
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
