"""The octaves of a prepared spectrum, with the number and the sum of the eigenvalues in each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eigencurve._arrays import Array, IntArray, frozen
from eigencurve.spectrum.groups import EDGE_TOLERANCE, group
from eigencurve.spectrum.spectrum import Spectrum, magnitudes


@dataclass(frozen=True, eq=False)
class OctaveGrid:
    r"""The non-empty octaves :math:`[\mu 2^i, \mu 2^{i+1})` of |λ| + weight decay.

    Attributes:
        index: Index i of each octave.
        lower: Lower edge :math:`\mu 2^i` of each octave.
        num_eigenvalues: Number of eigenvalues in each octave, d times its share.
        eigenvalue_sum: Sum of |λ| + weight decay over the eigenvalues of each octave.
        weight_decay: Weight decay that is added to every |λ|.
    """

    index: IntArray
    lower: Array
    num_eigenvalues: Array
    eigenvalue_sum: Array
    weight_decay: float

    @property
    def mean_curvature(self) -> Array:
        """Mean of |λ|, without weight decay, over the eigenvalues of each octave."""
        return np.asarray(np.maximum(self.eigenvalue_sum / self.num_eigenvalues - self.weight_decay, 0.0))

    def total(self, eigenvalues: Array, masses: Array) -> Array:
        """Sum of the masses in each octave of |λ| + weight decay, for masses at signed eigenvalues."""
        place = nearest_octave(np.abs(eigenvalues) + self.weight_decay, self.lower)
        return np.asarray(np.bincount(place, masses, minlength=len(self.lower)), dtype=np.float64)


def octave_grid(spectrum: Spectrum, weight_decay: float, dim: int) -> OctaveGrid:
    """The octaves of a measured spectrum in ``dim`` dimensions, prepared with ``weight_decay``."""
    prepared = magnitudes(spectrum, weight_decay)
    groups = group(prepared, beta=2.0)
    place, counts = nearest_octave(prepared.eigenvalues, groups.lower), dim * prepared.weights
    numbers, sums = (
        np.asarray(np.bincount(place, values, minlength=len(groups)), dtype=np.float64)
        for values in (counts, counts * prepared.eigenvalues)
    )
    return OctaveGrid(groups.index, groups.lower, frozen(numbers), frozen(sums), weight_decay)


def nearest_octave(heights: Array, lower: Array) -> IntArray:
    """Position in ``lower`` of the octave [lower, 2·lower) that each height is in, or of the nearest one.

    Distances are ratios. A height that is below an edge by a relative 1e-12 or less counts as on that edge.

    >>> nearest_octave(np.array([0.1, 1.9, 2.5, 6.0, 70.0]), np.array([1.0, 8.0]))
    array([0, 0, 0, 1, 1])
    """
    below = np.searchsorted(lower, heights * (1 + EDGE_TOLERANCE), side="right") - 1
    place = np.clip(below, 0, len(lower) - 1)
    above = np.minimum(place + 1, len(lower) - 1)
    is_nearer = (heights > 2 * lower[place]) & (lower[above] / heights < heights / (2 * lower[place]))
    return np.asarray(np.where(is_nearer, above, place), dtype=np.int64)
