"""Quadrature points and a spline basis for a density of ln|λ| on both sides of zero, with an atom at zero."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.interpolate import BSpline
from scipy.linalg import block_diag

from eigencurve._arrays import Array

NARROW = 0.01  # relative width below which a bulk is too narrow for a density on the log scale

_KNOTS_PER_OCTAVE = 3
_MAX_INTERVALS = 150  # between the knots on one side; with a tiny scale they become wider
_POINTS_PER_CELL = 4
_OCTAVES_BELOW = 3
_CURVATURE_LENGTH = 4.0  # in e-folds of |λ|; values from 3 to 8 work about equally well on the published spectra
_RESOLVED = 3.0  # |λ|, in spacings of the nodes at zero, above which the moments determine the curvature


@dataclass(frozen=True)
class LogGrid:
    """A grid for measures with masses = widths · exp(basis @ z) and roughness zᵀ penalty z of the log-density.

    Attributes:
        points: Signed eigenvalues; the atom at zero, if there is one, comes last.
        widths: Quadrature weights in ln|λ|; 1 for the atom.
        basis: Cubic B-splines in ln|λ|, one set for each sign, and one column for the atom.
        penalty: Roughness matrix, see :func:`curvature_penalty`; zero for the atom.
        slopes: Rows that give the slope of the log-density at the points next to zero, one for each sign; none if the
            spectrum does not reach zero.
        rank: Rank of the penalty.
        has_atom: Whether the last point is an atom at zero.
    """

    points: Array
    widths: Array
    basis: sparse.csr_array
    penalty: Array
    slopes: Array
    rank: int
    has_atom: bool


def log_grid(nodes: Array, scale: float) -> LogGrid:
    """The grid for the bulk of a spectrum with these Gauss nodes.

    It extends half a spacing beyond the outermost nodes. Towards zero it ends three octaves below ``scale`` or, if
    that is smaller, below the spacing of the nodes there. Anything closer to zero belongs to the atom.
    """
    low, high = bulk_ends(nodes)
    floor = min(scale, _spacing_at_zero(nodes)) / 2**_OCTAVES_BELOW
    parts = [_side(-1.0, max(floor, -high), -low, nodes), _side(1.0, max(floor, low), high, nodes)]
    parts = [part for part in parts if part.rank > 0]
    reaches_zero = low < floor and high > -floor
    return _joined([*parts, _ATOM]) if reaches_zero else _without_slopes(_joined(parts))


def supported(grid: LogGrid, bound: Array, negligible: float = 1e-10) -> LogGrid:
    """The grid without the points that cannot have mass, so that gaps of the spectrum need no low density."""
    kept = bound > negligible
    if grid.has_atom and not kept[-1]:
        grid, kept = _without_slopes(without_atom(grid)), kept[:-1]
    return replace(grid, points=grid.points[kept], widths=grid.widths[kept], basis=grid.basis[kept])


def without_atom(grid: LogGrid) -> LogGrid:
    """The grid without its atom at zero."""
    if not grid.has_atom:
        return grid
    return LogGrid(
        grid.points[:-1], grid.widths[:-1], grid.basis[:-1, :-1], grid.penalty[:-1, :-1], grid.slopes[:, :-1],
        grid.rank, has_atom=False,
    )  # fmt: skip


def _without_slopes(grid: LogGrid) -> LogGrid:
    return replace(grid, slopes=grid.slopes[:0])


def bulk_ends(nodes: Array, reach: int = 3) -> tuple[float, float]:
    """The ends of the bulk: half a mean spacing beyond the outermost nodes."""
    n = min(reach, len(nodes) - 1)
    below, above = (nodes[n] - nodes[0]) / n, (nodes[-1] - nodes[-1 - n]) / n
    return float(nodes[0] - below / 2), float(nodes[-1] + above / 2)


def curvature_penalty(count: int, step: float, start: float = -np.inf, spacing: float = 1.0) -> Array:
    r"""Precision matrix of the spline coefficients if the curvature of the log-density g is correlated over ℓ.

    .. math:: z^\top P z \approx \tfrac12 \int \frac{\ell\, g'''(v)^2 + g''(v)^2/\ell}{1 + (|λ|/3Δ)^2} \; dv, \qquad
              v = \ln|λ|

    This is minus twice the log-probability of g'' as an Ornstein-Uhlenbeck process of variance 1 and correlation
    length ℓ = 4 e-folds, written with differences of the coefficients z as in P-splines (Eilers & Marx,
    Statist. Sci. 11, 1996). Below the resolution of the moments, g continues as a parabola (a log-normal density),
    which turns into a line (a power law) within ℓ. Above it, where the nodes are closer to each other than to zero, the
    moments determine the curvature, and the variance grows with (|λ|/3Δ)². Otherwise the curvature of the edges of the
    bulk would continue down to zero.

    Args:
        count: Number of coefficients.
        step: Distance of the knots in v.
        start: Smallest v; the centre of the second coefficient.
        spacing: Spacing Δ of the nodes at zero.
    """

    def differences(order: int) -> Array:
        v = start + step * (np.arange(count - order) + order / 2 - 1)
        deviation = np.hypot(1, np.exp(v) / (_RESOLVED * spacing))
        return np.asarray(np.diff(np.eye(count), order, axis=0) / (step ** (order - 0.5) * deviation[:, None]))

    second, third = differences(2), differences(3)
    penalty = (_CURVATURE_LENGTH * third.T @ third + second.T @ second / _CURVATURE_LENGTH) / 2
    return np.asarray(penalty)


_ATOM = LogGrid(np.zeros(1), np.ones(1), sparse.csr_array(np.eye(1)), np.zeros((1, 1)), np.zeros((0, 1)), 0, True)
_NOTHING = LogGrid(np.zeros(0), np.zeros(0), sparse.csr_array((0, 0)), np.zeros((0, 0)), np.zeros((0, 0)), 0, False)


def _joined(parts: list[LogGrid]) -> LogGrid:
    return LogGrid(
        np.concatenate([part.points for part in parts]),
        np.concatenate([part.widths for part in parts]),
        sparse.csr_array(sparse.block_diag([part.basis for part in parts], format="csr")),
        block_diag(*[part.penalty for part in parts]),
        block_diag(*[part.slopes for part in parts]),
        sum(part.rank for part in parts),
        parts[-1].has_atom,
    )


def _side(sign: float, near: float, far: float, nodes: Array) -> LogGrid:
    """The grid over near < sign·λ < far, with Gauss-Legendre points between the knots and the nodes."""
    if far <= near * (1 + NARROW):
        return _NOTHING
    start, stop = np.log([near, far])
    count = int(np.clip(np.ceil((stop - start) / np.log(2) * _KNOTS_PER_OCTAVE), 4, _MAX_INTERVALS))
    step = (stop - start) / count
    inside = np.log(np.abs(nodes[(sign * nodes > near) & (sign * nodes < far)]))
    v, widths = _gauss_legendre(np.unique(np.concatenate([np.linspace(start, stop, count + 1), inside])))
    basis = BSpline.design_matrix(v, start + step * np.arange(-3, count + 4), 3, extrapolate=True)
    penalty = curvature_penalty(count + 3, step, start, _mean_spacing_at_zero(nodes))
    slope = np.zeros((1, count + 3))
    slope[0, [0, 2]] = -1 / (2 * step), 1 / (2 * step)  # the derivative of cubic B-splines at a knot
    return LogGrid(sign * np.exp(v), widths, sparse.csr_array(basis), penalty, slope, count + 1, False)


def _gauss_legendre(breaks: Array) -> tuple[Array, Array]:
    """Points and weights of a Gauss-Legendre rule in each cell, because the moments oscillate between the nodes."""
    x, w = np.polynomial.legendre.leggauss(_POINTS_PER_CELL)
    half = np.diff(breaks)[:, None] / 2
    return (breaks[:-1, None] + half * (x + 1)).ravel(), (half * w).ravel()


def _spacing_at_zero(nodes: Array) -> float:
    """The smaller gap next to the node nearest to zero."""
    i = int(np.clip(np.argmin(np.abs(nodes)), 1, len(nodes) - 2))
    return float(np.min(np.diff(nodes[i - 1 : i + 2])))


def _mean_spacing_at_zero(nodes: Array, reach: int = 3) -> float:
    """The mean spacing of the nodes nearest to zero."""
    reach = min(reach, (len(nodes) - 1) // 2)
    i = int(np.clip(np.argmin(np.abs(nodes)), reach, len(nodes) - 1 - reach))
    return float(nodes[i + reach] - nodes[i - reach]) / (2 * reach)
