"""Octaves, the table of a measured quantity per octave of a spectrum: shares, gradient noise, initial error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eigencurve._arrays import Array, IntArray, frozen
from eigencurve.spectrum.groups import EDGE_TOLERANCE, group
from eigencurve.spectrum.spectrum import Spectrum, magnitudes

SYMBOLS = {"share": "", "sigma2": "sigma^2 ", "level": "error "}


@dataclass(frozen=True, eq=False)
class Octaves:
    r"""One quantity in each non-empty octave :math:`[\mu 2^i, \mu 2^{i+1})` of |λ| + weight decay.

    ``value`` can also be read by the name of the quantity, and every column by its name: ``noise.octaves.sigma2``,
    ``noise.octaves.num_eigenvalues``.

    Attributes:
        quantity: Name of the quantity: ``"share"`` of the eigenvalues, noise level ``"sigma2"`` of a batch, initial
            error ``"level"`` (mean of λ_j Δ_j²), or ``"num_eigenvalues"``.
        index: Index i of each octave.
        lower: Lower edge :math:`\mu 2^i` of each octave.
        value: Value of the quantity in each octave.
        error: Standard error of each value.
        weight_decay: Weight decay that is added to every |λ|.
        columns: Other quantities per octave by name. Noise and initial error have ``num_eigenvalues`` and ``mass``
            (trace of one example's gradient covariance; sum of λ_j Δ_j²). Noise also has ``eigenvalue_sum`` (sum of
            |λ| + weight decay), ``gradient`` (squared length of the mean gradient without its sampling noise, so
            possibly negative) and ``gradient_error``.
    """

    quantity: str
    index: IntArray
    lower: Array
    value: Array
    error: Array
    weight_decay: float
    columns: Mapping[str, Array] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Array:
        if name == self.__dict__.get("quantity"):
            return self.value
        try:
            return self.__dict__["columns"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"these octaves have no {name!r}") from None

    def __len__(self) -> int:
        return len(self.index)

    def __str__(self) -> str:
        counts = [f"{count:>11.4g} eigenvalues  " for count in self.columns.get("num_eigenvalues", ())]
        rows = zip(self.index, self.lower, counts or [""] * len(self), self.value, self.error, strict=True)
        symbol = SYMBOLS.get(self.quantity, "")
        return "\n".join(
            f"  {i:>3}  from {low:<9.3g} {count}{symbol}{value:>9.3e} +- {error:.1e}"
            for i, low, count, value, error in rows
        )

    def __repr__(self) -> str:
        return f"Octaves({self.quantity} in {len(self)} octaves from {self.lower[0]:.4g} to {self.lower[-1]:.4g})"

    def at(self, eigenvalues: Array) -> Array:
        """The value for each eigenvalue |λ| + weight decay; outside all octaves, the value of the nearest one."""
        return np.asarray(self.value[nearest_octave(np.asarray(eigenvalues), self.lower)])

    def total(self, eigenvalues: Array, masses: Array) -> Array:
        """Sum of the masses in each octave of |λ| + weight decay, for masses at signed eigenvalues."""
        place = nearest_octave(np.abs(eigenvalues) + self.weight_decay, self.lower)
        return np.asarray(np.bincount(place, masses, minlength=len(self)), dtype=np.float64)

    def fields(self) -> dict[str, Any]:
        """The columns as arrays ``octave_<name>`` for a file, and the weight decay."""
        columns = {"index": self.index, "lower": self.lower, self.quantity: self.value, "error": self.error}
        arrays = {f"octave_{name}": values for name, values in {**columns, **self.columns}.items()}
        return {**arrays, "weight_decay": self.weight_decay}


def octaves_from_fields(fields: Mapping[str, Any], quantity: str, columns: tuple[str, ...] = ()) -> Octaves:
    """Restore the table from :meth:`Octaves.fields`.

    Raises:
        KeyError, TypeError, ValueError: A column is missing, not finite, or of another length.
    """
    names = ("index", "lower", quantity, "error", *columns)
    arrays = {name: finite_vector(fields[f"octave_{name}"]) for name in names}
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1 or 0 in lengths:
        raise ValueError("the columns of the octaves are empty or have different lengths")
    index, lower, value, error = (arrays.pop(name) for name in names[:4])
    return Octaves(quantity, index.astype(np.int64), lower, value, error, float(fields["weight_decay"]), arrays)


def finite_vector(values: Any) -> Array:
    """A stored array as a read-only vector; raise ValueError if it is not a finite vector."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError("an array is not a finite vector")
    return frozen(array)


def octave_counts(spectrum: Spectrum, weight_decay: float, dim: int) -> Octaves:
    """Number and sum of |λ| + weight decay of the eigenvalues in each octave, in ``dim`` dimensions, without errors."""
    prepared = magnitudes(spectrum, weight_decay)
    groups = group(prepared, beta=2.0)
    place, counts = nearest_octave(prepared.eigenvalues, groups.lower), dim * prepared.weights
    numbers, sums = (
        frozen(np.bincount(place, values, minlength=len(groups)).astype(np.float64))
        for values in (counts, counts * prepared.eigenvalues)
    )
    no_errors = frozen(np.zeros(len(groups)))
    columns = {"eigenvalue_sum": sums}
    return Octaves("num_eigenvalues", groups.index, groups.lower, numbers, no_errors, weight_decay, columns)


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
