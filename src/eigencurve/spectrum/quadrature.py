"""From the Lanczos tridiagonal (α, β) to Gauss nodes and to a spectrum that is accurate on the log scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh_tridiagonal

from eigencurve import _check
from eigencurve._arrays import Array, IntArray, frozen
from eigencurve.spectrum.counting import BoolArray, counted_nodes, nearest_nodes, recounted
from eigencurve.spectrum.log_grid import NARROW
from eigencurve.spectrum.moment_fit import fit_bulk
from eigencurve.spectrum.spectrum import Spectrum

# When a node counts as converged, see `sharpen`. A node of weight w that is wrongly kept changes the moments by about
# w·(residual/spacing)², which is below the noise σ·√w of a spectrum if √w·(residual/spacing)² is well below σ.
_RESIDUAL_PER_SPACING = 0.3
_RESIDUAL_TIMES_ROOT = 0.01
_SAFE_EXPONENT = 300  # entries between 2^-300 and 2^300 can be squared and summed
_LEAST_SCALE = 1e-290  # λ / scale must be far below the largest float
_NEGLIGIBLE = 1e-12  # added to `scale`, smaller |λ| are the same number
_MIN_BULK = 8  # fewer nodes do not determine a density
_BREAKDOWN = 1e-13  # a β below this fraction of the largest |θ| is rounding error


@dataclass(frozen=True, eq=False)
class Sharpened:
    """A sharpened spectrum, and the part of it that has no sampling error.

    Attributes:
        spectrum: The spectrum.
        counted: Eigenvalues that were found one by one; each has weight 1/d.
        num_zeros: Number of eigenvalues that are known to be zero.
    """

    spectrum: Spectrum
    counted: Array
    num_zeros: int = 0


def gauss_quadrature(alphas: ArrayLike, betas: ArrayLike) -> tuple[Array, Array]:
    r"""Nodes and weights of the Gauss rule of a Lanczos tridiagonal.

    .. math:: T = S \,\mathrm{diag}(\theta)\, S^\top, \qquad w_i = S_{0i}^2

    With k = len(alphas), the rule is exact for polynomials of degree below 2k under the spectral measure of
    the start vector. Reference: Golub & Welsch, Math. Comp. 23 (1969).

    Args:
        alphas: Diagonal of T, k numbers.
        betas: Off-diagonal of T, k - 1 numbers. A k-th number, the norm of the last residual, is ignored.

    Returns:
        Nodes in ascending order, and weights that sum to 1.

    >>> gauss_quadrature([1.0, 1.0], [1.0])
    (array([0., 2.]), array([0.5, 0.5]))
    """
    nodes, vectors = eigenpairs(*_tridiagonal("gauss_quadrature", alphas, betas))
    return nodes, vectors[0] ** 2


def sharpen(
    alphas: ArrayLike, betas: ArrayLike, scale: float, smoothness: float | None = None, dim: int | None = None
) -> Spectrum:
    r"""Estimate a spectrum from a Lanczos tridiagonal, accurate in log|λ| down to ``scale``.

    Gauss nodes are not eigenvalues: near zero they leave whole octaves empty. So only the converged nodes at both ends
    are kept. For the bulk between them, the density of ln|λ| on either side of zero and an atom at zero are estimated
    from the moments that the tridiagonal determines; see :func:`fit_bulk`. The schedule of arXiv:2110.14109 needs the
    mass in every octave of |λ| + weight decay.

    A node θ_i of weight w_i = S_{0i}² counts as converged if its residual is small compared with the mean spacing of
    its neighbours. The limit is stricter for heavier nodes:

    .. math:: \beta_k |S_{k-1,i}| \le \min(0.3,\; 0.01\, w_i^{-1/4})\, \overline{\Delta\theta}_i

    If β_k is not given, β_{k-1} is used in its place. The Gauss rule itself is returned if the bulk has fewer than
    eight nodes, if they are within 1 % of each other, if all |λ| are negligible compared with ``scale``, or if some
    β_j = 0, which means that Lanczos found every eigenvalue.

    Args:
        alphas: Diagonal of T, k numbers.
        betas: Off-diagonal of T, k - 1 numbers, preferably followed by the norm of the last residual.
        scale: Value of |λ| below which it does not matter how the mass is distributed; about the weight decay.
        smoothness: Standard deviation τ of the curvature of the log-density, per squared e-fold of |λ|; None to
            estimate it from the moments.
        dim: Number of parameters d, stored in the result. If it is given, converged isolated nodes get weight 1/d; see
            :mod:`eigencurve.spectrum.counting`.

    Returns:
        The spectrum with signed eigenvalues, for :func:`prepare`.

    Raises:
        ValueError: An entry is not finite, a β is negative, or the lengths do not match.
    """
    return sharpen_and_count(alphas, betas, scale, smoothness, dim).spectrum


def sharpen_and_count(
    alphas: ArrayLike,
    betas: ArrayLike,
    scale: float,
    smoothness: float | None = None,
    dim: int | None = None,
    residuals: Array | None = None,
    counted: Array | None = None,
) -> Sharpened:
    """Sharpen a tridiagonal as :func:`sharpen` does, and report which of the eigenvalues are counted.

    ``residuals`` are the norms of the residuals of the nodes in ascending order, by default computed from ``betas``.
    ``counted`` are the eigenvalues to count, by default chosen by the residuals (:func:`counted_nodes`).
    """
    alpha, beta = _tridiagonal("sharpen", alphas, betas)
    floor = _check.positive("sharpen", "scale", scale, "Pass the weight decay, or the smallest curvature that matters.")
    tau = None if smoothness is None else _check.positive("sharpen", "smoothness", smoothness)
    nodes, vectors = eigenpairs(alpha, beta)
    weights = vectors[0] ** 2
    last_residual = float(beta[-1]) if len(beta) else 0.0  # β_k if it is given, otherwise β_{k-1}
    errors = last_residual * np.abs(vectors[-1]) if residuals is None else residuals
    is_counted = np.zeros(len(nodes), dtype=bool)
    if dim is not None:
        is_counted = counted_nodes(nodes, weights, errors, dim) if counted is None else nearest_nodes(nodes, counted)
    bulk = _bulk(nodes, weights, errors, is_counted)
    largest = float(np.abs(nodes).max())
    if largest * _LEAST_SCALE > floor:
        least = f">= {largest * _LEAST_SCALE:.2g} for eigenvalues up to {largest:.2g}"
        _check.refuse("sharpen", "scale", least, floor, "It is the weight decay of the run.")
    if largest <= _NEGLIGIBLE * floor or _broke_down(nodes, beta[: len(nodes) - 1]) or not _has_shape(nodes[bulk]):
        return _finished(nodes, weights, is_counted, dim)
    points, masses = fit_bulk(alpha, beta, nodes, vectors, bulk, floor, tau)
    kept = np.setdiff1d(np.arange(len(nodes)), bulk)
    is_counted = np.concatenate([is_counted[kept], np.zeros(len(points), dtype=bool)])
    return _finished(np.concatenate([nodes[kept], points]), np.concatenate([weights[kept], masses]), is_counted, dim)


def with_zeros(sharpened: Sharpened, num_zeros: int) -> Sharpened:
    """Add ``num_zeros`` dimensions of eigenvalue zero to a sharpened spectrum of known dimension."""
    spectrum = sharpened.spectrum
    if num_zeros == 0 or spectrum.dim is None:
        return sharpened
    dim = spectrum.dim + num_zeros
    at_zero = spectrum.eigenvalues == 0
    weights = np.append(spectrum.weights[~at_zero] * spectrum.dim, spectrum.weights[at_zero].sum() * spectrum.dim)
    weights[-1] += num_zeros
    whole = Spectrum(np.append(spectrum.eigenvalues[~at_zero], 0.0), weights / dim, dim)
    return Sharpened(whole, sharpened.counted, num_zeros)


def _finished(eigenvalues: Array, weights: Array, counted: BoolArray, dim: int | None) -> Sharpened:
    shares = weights if dim is None else recounted(weights, counted, dim)
    return Sharpened(Spectrum(eigenvalues, shares, dim), frozen(np.sort(eigenvalues[counted])))


def _tridiagonal(function: str, alphas: ArrayLike, betas: ArrayLike) -> tuple[Array, Array]:
    """Check α and β: k diagonal entries, and k - 1 or k others."""
    alpha = _check.vector(function, "alphas", alphas)
    beta = np.zeros(0) if np.size(betas) == 0 else _check.vector(function, "betas", betas)
    if len(beta) not in (len(alpha) - 1, len(alpha)):
        _check.refuse(function, "betas", f"{len(alpha) - 1} or {len(alpha)} numbers for {len(alpha)} alphas", len(beta))
    if (beta < 0).any():
        _check.refuse(function, "betas", ">= 0", float(beta.min()), "They are norms.")
    return alpha, beta


def eigenpairs(alphas: Array, betas: Array) -> tuple[Array, Array]:
    """θ and S of T = S diag(θ) Sᵀ, with θ ascending.

    A very small or large T is scaled by a power of two first, because LAPACK squares its entries.
    """
    inner = betas[: len(alphas) - 1]
    _, exponent = math.frexp(max(float(np.abs(alphas).max()), float(np.abs(inner).max(initial=0.0))))
    shift = 0 if abs(exponent) < _SAFE_EXPONENT else -exponent
    nodes, vectors = eigh_tridiagonal(np.ldexp(alphas, shift), np.ldexp(inner, shift))
    return np.ldexp(nodes, -shift), vectors


def _broke_down(nodes: Array, betas: Array) -> bool:
    """Whether a negligible β splits T, so that the leading block spans an invariant subspace."""
    return bool(np.any(betas <= _BREAKDOWN * np.max(np.abs(nodes))))


def _has_shape(nodes: Array) -> bool:
    """Whether there are enough nodes, spread widely enough on the log scale, to determine a density."""
    straddle = len(nodes) > 0 and nodes[0] <= 0 <= nodes[-1]
    return len(nodes) >= _MIN_BULK and (straddle or np.ptp(nodes) > NARROW * np.min(np.abs(nodes)))


def _bulk(nodes: Array, weights: Array, residuals: Array, counted: BoolArray) -> IntArray:
    """Indices of the nodes from the first to the last unconverged one, without those that are counted."""
    fourth_root = weights**0.25
    allowed = np.minimum(_RESIDUAL_PER_SPACING * fourth_root, _RESIDUAL_TIMES_ROOT)
    (loose,) = np.nonzero((residuals * fourth_root > allowed * _spacings(nodes)) & ~counted)
    inside = np.arange(loose[0], loose[-1] + 1) if len(loose) else np.zeros(0, dtype=np.int64)
    return inside[~counted[inside]]


def _spacings(nodes: Array, reach: int = 3) -> Array:
    """Mean spacing of the nodes up to ``reach`` places away, so that a close pair does not count as isolated."""
    index = np.arange(len(nodes))
    low, high = np.maximum(index - reach, 0), np.minimum(index + reach, len(nodes) - 1)
    return np.asarray((nodes[high] - nodes[low]) / np.maximum(high - low, 1))
