"""Spectrum, the eigenvalue distribution of a Hessian, and ``prepare``, which makes it positive."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve.spectrum.describe import SpectrumDescription, describe_spectrum
from eigencurve.spectrum.groups import require_positive

NEGATIVES = ("abs", "drop", "error")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Spectrum:
    r"""A distribution of eigenvalues: weight :math:`w_j` at :math:`\lambda_j`, with :math:`\sum_j w_j = 1`.

    Measured eigenvalues of a Hessian may be negative. :func:`prepare` turns them into the positive ones that a schedule
    needs. An eigenvalue of weight zero is kept and counts for ``mu`` and ``L``, because an estimate can find an
    eigenvalue whose share underflows to zero.

    Args:
        eigenvalues: Real eigenvalues in any order; stored sorted.
        weights: Share of each eigenvalue, not negative; stored divided by their sum.
        dim: Number of parameters d, or None if unknown.

    Raises:
        ValueError: A value is not finite, a weight is negative, all weights are zero, or the lengths differ.

    >>> s = Spectrum([4.0, 1.0], [1, 3])
    >>> s.eigenvalues, s.weights
    (array([1., 4.]), array([0.75, 0.25]))
    >>> s.kappa
    4.0
    """

    eigenvalues: Array
    weights: Array
    dim: int | None

    def __init__(self, eigenvalues: ArrayLike, weights: ArrayLike, dim: int | None = None) -> None:
        values = _check.vector("Spectrum", "eigenvalues", eigenvalues)
        shares = _checked_weights(_check.vector("Spectrum", "weights", weights), len(values))
        order = np.argsort(values, kind="stable")
        object.__setattr__(self, "eigenvalues", frozen(values[order]))
        object.__setattr__(self, "weights", frozen(_normalised(shares[order])))
        object.__setattr__(self, "dim", None if dim is None else _check.whole("Spectrum", "dim", dim, minimum=1))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Spectrum:
        """The exact spectrum of a real symmetric matrix.

        Raises:
            ValueError: The matrix is not square, not finite, or not symmetric to within 1e-8 of its largest entry.
        """
        eigenvalues = np.linalg.eigvalsh(_symmetric(matrix))
        return cls(eigenvalues, np.ones_like(eigenvalues), dim=len(eigenvalues))

    @property
    def mu(self) -> float:
        """The smallest eigenvalue, μ."""
        return float(self.eigenvalues[0])

    @property
    def L(self) -> float:  # noqa: N802 -- the paper's letter, see docs/notation.md
        """The largest eigenvalue, L."""
        return float(self.eigenvalues[-1])

    @property
    def kappa(self) -> float:
        """The condition number κ = L/μ of a positive spectrum."""
        require_positive("kappa", self)
        return self.L / self.mu

    @property
    def negative_share(self) -> float:
        r"""The share of the curvature that is negative, :math:`\sum_{\lambda_j<0}w_j|\lambda_j| / \sum w_j|\lambda_j|`.

        It is 0 if there is no curvature at all.
        """
        height = max(-self.mu, self.L)
        curvature = self.weights * (self.eigenvalues / height if height > 0 else self.eigenvalues)
        total = float(np.abs(curvature).sum())
        return float(np.abs(curvature[curvature < 0]).sum()) / total if total > 0 else 0.0

    def describe(self, weight_decay: float | None = None) -> SpectrumDescription:
        """A printable description: d, κ, the share of every octave, the extra term and the power-law exponent.

        Args:
            weight_decay: Weight decay to :func:`prepare` the spectrum with first, required if it is not positive. The
                fraction of negative eigenvalues always describes the unprepared spectrum.
        """
        prepared = self if weight_decay is None else prepare(self, weight_decay)
        require_positive("describe", prepared)
        return describe_spectrum(prepared, fraction_negative=float(self.weights[self.eigenvalues < 0].sum()))

    def __len__(self) -> int:
        return len(self.eigenvalues)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Spectrum)
            and self.dim == other.dim
            and np.array_equal(self.eigenvalues, other.eigenvalues)
            and np.array_equal(self.weights, other.weights)
        )

    def __hash__(self) -> int:
        return hash((self.eigenvalues.tobytes(), self.weights.tobytes(), self.dim))

    def __repr__(self) -> str:
        return f"Spectrum({len(self)} eigenvalues from {self.mu:.4g} to {self.L:.4g}, dim={self.dim})"

    def __reduce__(self) -> tuple[type[Spectrum], tuple[Array, Array, int | None]]:
        return type(self), (self.eigenvalues, self.weights, self.dim)


def prepare(spectrum: Spectrum, weight_decay: float = 0.0, negatives: str = "abs") -> Spectrum:
    r"""Make a measured spectrum positive, as a schedule needs it.

    .. math:: \lambda_j \leftarrow |\lambda_j| + \text{weight decay}

    Close to a minimum the negative eigenvalues are small and arise only because the minimum is not reached exactly, so
    the paper takes their absolute value. The L2 term adds the weight decay to every eigenvalue.

    Args:
        spectrum: Measured spectrum.
        weight_decay: Weight decay of the training run that the schedule is for, not negative.
        negatives: ``"abs"`` to take absolute values, as the paper does; ``"drop"`` to remove negative eigenvalues and,
            without weight decay, zeros; ``"error"`` to raise an error if there are any.

    Raises:
        ValueError: No eigenvalue is positive and some are negative, as at a maximum; the smallest eigenvalue is still
            not positive; or no eigenvalue is left.

    Reference: arXiv:2110.14109, Appendix "Settings for Eigencurve", phase 3.

    >>> prepare(Spectrum([-1.0, 0.0, 3.0], [1, 1, 2]), weight_decay=0.5).eigenvalues
    array([0.5, 1.5, 3.5])
    """
    if not isinstance(spectrum, Spectrum):
        _check.wrong_type("prepare", "spectrum", "a Spectrum", spectrum)
    decay = _check.at_least("prepare", "weight_decay", weight_decay, 0.0)
    _check.choice("prepare", "negatives", negatives, NEGATIVES)
    if negatives == "error" and spectrum.mu < 0:
        _check.refuse(
            "prepare", "spectrum", "without negative eigenvalues", spectrum.mu, "Use negatives='abs' or 'drop'."
        )
    if spectrum.mu < 0 and spectrum.L <= 0:
        remedy = "All of the curvature is negative, as at a maximum: check the sign of the loss."
        _check.refuse("prepare", "spectrum", "positive somewhere", spectrum, remedy)
    prepared = magnitudes(_without_negatives(spectrum, decay) if negatives == "drop" else spectrum, decay)
    require_positive("prepare", prepared)
    return prepared


def magnitudes(spectrum: Spectrum, weight_decay: float) -> Spectrum:
    r"""The spectrum of :math:`|\lambda_j|` + weight decay, also of one with no positive eigenvalue.

    Raises:
        ValueError: The weight decay is so large that a sum overflows.
    """
    with np.errstate(over="ignore"):
        heights = np.abs(spectrum.eigenvalues) + weight_decay
    if not np.isfinite(heights).all():
        _check.refuse("prepare", "weight_decay", "small enough to be added to the eigenvalues", weight_decay)
    return Spectrum(heights, spectrum.weights, spectrum.dim)


def _without_negatives(spectrum: Spectrum, weight_decay: float) -> Spectrum:
    keep = (spectrum.eigenvalues >= 0) & (spectrum.eigenvalues + weight_decay > 0)
    share = float(spectrum.weights[keep].sum())
    if share == 0:
        remedy = "Nothing is left after negatives='drop': use negatives='abs'."
        _check.refuse("prepare", "spectrum", "positive somewhere", spectrum, remedy)
    dim = None if spectrum.dim is None else max(1, round(spectrum.dim * share))
    return Spectrum(spectrum.eigenvalues[keep], spectrum.weights[keep], dim)


def _checked_weights(weights: Array, count: int) -> Array:
    if len(weights) != count:
        _check.refuse("Spectrum", "weights", f"as long as 'eigenvalues' ({count})", f"{len(weights)} weights")
    if (weights < 0).any():
        _check.refuse("Spectrum", "weights", ">= 0", float(weights.min()))
    if weights.max() > np.finfo(np.float64).max / count:
        _check.refuse("Spectrum", "weights", "small enough to be summed", float(weights.max()), "Divide them first.")
    if not weights.any():
        _check.refuse("Spectrum", "weights", "above zero somewhere", "all zero")
    return weights


def _normalised(weights: Array) -> Array:
    """Weights divided by their sum, or unchanged to the last bit if they already sum to 1."""
    total = math.fsum(weights)
    return weights if abs(total - 1) <= 4 * np.finfo(np.float64).eps else weights / total


def _symmetric(matrix: Any) -> Array:
    array = _check.real_array("Spectrum.from_matrix", "matrix", "a matrix of real numbers", matrix)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        _check.refuse("Spectrum.from_matrix", "matrix", "square", f"shape {array.shape}")
    if not np.isfinite(array).all():
        _check.refuse("Spectrum.from_matrix", "matrix", "finite", "NaN or infinity")
    asymmetry = float(np.abs(array - array.T).max())
    if asymmetry > 1e-8 * float(np.abs(array).max()):
        _check.refuse(
            "Spectrum.from_matrix", "matrix", "symmetric", f"|A - A^T| = {asymmetry:.3g}", "Pass (A + A.T) / 2."
        )
    return (array + array.T) / 2
