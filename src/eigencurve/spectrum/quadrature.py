"""From the Lanczos tridiagonal (α, β) to Gauss nodes, and on to a spectrum that is right on the log scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh_tridiagonal

from eigencurve import _check
from eigencurve._arrays import Array
from eigencurve.spectrum.log_grid import NARROW
from eigencurve.spectrum.moment_fit import fit_bulk
from eigencurve.spectrum.spectrum import Spectrum

# When a node counts as converged: see `sharpen`. A wrong atom of weight w disturbs the moments by about
# w·(residual/spacing)², which the noise σ·√w of a spectrum hides if √w·(residual/spacing)² is well below σ.
_RESIDUAL_PER_SPACING = 0.3
_RESIDUAL_TIMES_ROOT = 0.01
_MIN_BULK = 8  # fewer nodes than this say little about a density
_BREAKDOWN = 1e-13  # β below this part of the largest |θ| is rounding


def gauss_quadrature(alphas: ArrayLike, betas: ArrayLike) -> tuple[Array, Array]:
    r"""Nodes and weights of the Gauss rule of a Lanczos tridiagonal.

    .. math:: T = S \,\mathrm{diag}(\theta)\, S^\top, \qquad w_i = S_{0i}^2

    With k = len(alphas), the rule is exact for polynomials of degree below 2k under the spectral measure of
    the start vector. Reference: Golub & Welsch, Math. Comp. 23 (1969).

    Args:
        alphas: diagonal of T, k numbers.
        betas: off-diagonal of T, k - 1 numbers; the norm of the last residual may follow and is not used.

    Returns:
        Nodes, ascending, and weights, which sum to 1.

    >>> gauss_quadrature([1.0, 1.0], [1.0])
    (array([0., 2.]), array([0.5, 0.5]))
    """
    nodes, vectors = _eigenpairs(*_tridiagonal("gauss_quadrature", alphas, betas))
    return nodes, vectors[0] ** 2


def sharpen(
    alphas: ArrayLike, betas: ArrayLike, scale: float, smoothness: float | None = None, dim: int | None = None
) -> Spectrum:
    r"""A spectrum with the moments of a Lanczos tridiagonal that is accurate in log|λ| down to ``scale``.

    Gauss nodes are not eigenvalues: near zero they leave whole octaves empty. The converged nodes at both
    ends are kept. For the rest, the bulk, the density of ln|λ| on either side of zero and an atom at zero
    are estimated from the moments that the tridiagonal knows; see :func:`fit_bulk`.

    A node θ_i of weight w_i = S_{0i}² counts as converged when its residual is small against the mean spacing
    of its neighbours, all the more so the heavier it is:

    .. math:: \beta_k |S_{k-1,i}| \le \min(0.3,\; 0.01\, w_i^{-1/4})\, \overline{\Delta\theta}_i

    Without β_k, β_{k-1} stands for it. The Gauss rule itself is returned if fewer than eight nodes are left,
    if they lie within 1% of each other, or if some β_j = 0 says that Lanczos had found everything. What for:
    the schedule of arXiv:2110.14109 needs the mass in every octave of |λ| + weight decay.

    Args:
        alphas: diagonal of T, k numbers.
        betas: off-diagonal of T, k - 1 numbers, and preferably the norm of the last residual.
        scale: |λ| below which it does not matter how the mass is spread, about the weight decay.
        smoothness: standard deviation τ of the curvature of the log-density, per squared e-fold of |λ|; None
            lets the moments choose it.
        dim: the number of parameters, kept in the result.

    Returns:
        The spectrum, with signed eigenvalues: :func:`prepare` comes next.

    Raises:
        ValueError: tridiagonal entries that are not finite, a negative β, or lengths that do not fit.
    """
    alpha, beta = _tridiagonal("sharpen", alphas, betas)
    floor = _check.positive("sharpen", "scale", scale, "Give the weight decay, or the smallest curvature that matters.")
    tau = None if smoothness is None else _check.positive("sharpen", "smoothness", smoothness)
    nodes, vectors = _eigenpairs(alpha, beta)
    bulk = _unconverged(nodes, vectors, _residual_norm(beta))
    if _broke_down(nodes, beta[: len(nodes) - 1]) or not _has_shape(nodes[bulk]):
        return Spectrum(nodes, vectors[0] ** 2, dim)
    points, masses = fit_bulk(alpha, beta, nodes, vectors, bulk, floor, tau)
    keep = np.r_[0 : bulk.start, bulk.stop : len(nodes)]
    return Spectrum(np.concatenate([nodes[keep], points]), np.concatenate([vectors[0, keep] ** 2, masses]), dim)


def _tridiagonal(function: str, alphas: ArrayLike, betas: ArrayLike) -> tuple[Array, Array]:
    """Both as checked arrays: k diagonal entries, and k - 1 or k others."""
    alpha = _check.vector(function, "alphas", alphas)
    beta = np.zeros(0) if np.size(betas) == 0 else _check.vector(function, "betas", betas)
    if len(beta) not in (len(alpha) - 1, len(alpha)):
        _check.refuse(function, "betas", f"{len(alpha) - 1} or {len(alpha)} numbers for {len(alpha)} alphas", len(beta))
    if (beta < 0).any():
        _check.refuse(function, "betas", ">= 0", float(beta.min()), "They are norms.")
    return alpha, beta


def _eigenpairs(alphas: Array, betas: Array) -> tuple[Array, Array]:
    """θ and S of T = S diag(θ) Sᵀ, θ ascending."""
    nodes, vectors = eigh_tridiagonal(alphas, betas[: len(alphas) - 1])
    return nodes, vectors


def _broke_down(nodes: Array, betas: Array) -> bool:
    """Whether a negligible β splits T: the leading block then spans an invariant subspace."""
    return bool(np.any(betas <= _BREAKDOWN * np.max(np.abs(nodes))))


def _has_shape(nodes: Array) -> bool:
    """Whether the nodes are many enough, and spread enough on the log scale, to speak of a density."""
    straddle = len(nodes) > 0 and nodes[0] <= 0 <= nodes[-1]
    return len(nodes) >= _MIN_BULK and (straddle or np.ptp(nodes) > NARROW * np.min(np.abs(nodes)))


def _residual_norm(betas: Array) -> float:
    """β_k, or β_{k-1} in its place; 0 for a single step without it."""
    return float(betas[-1]) if len(betas) else 0.0


def _unconverged(nodes: Array, vectors: Array, residual_norm: float) -> slice:
    """The nodes between the converged ones at the lower and at the upper end."""
    residuals, fourth_root = residual_norm * np.abs(vectors[-1]), np.sqrt(np.abs(vectors[0]))
    allowed = np.minimum(_RESIDUAL_PER_SPACING * fourth_root, _RESIDUAL_TIMES_ROOT)
    (loose,) = np.nonzero(residuals * fourth_root > allowed * _spacings(nodes))
    return slice(int(loose[0]), int(loose[-1]) + 1) if len(loose) else slice(0, 0)


def _spacings(nodes: Array, reach: int = 3) -> Array:
    """Mean spacing of the nodes up to ``reach`` places away, so that a close pair does not look isolated."""
    index = np.arange(len(nodes))
    low, high = np.maximum(index - reach, 0), np.minimum(index + reach, len(nodes) - 1)
    return np.asarray((nodes[high] - nodes[low]) / np.maximum(high - low, 1))
