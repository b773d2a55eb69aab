"""Eigenvalues by powers of β above the smallest: the counts s_i, the extra term and the log-density."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from scipy.interpolate import PchipInterpolator

from eigencurve import _check
from eigencurve._arrays import Array, IntArray, frozen

if TYPE_CHECKING:
    from eigencurve.spectrum.spectrum import Spectrum

# An eigenvalue this close below the edge of a group belongs to it: rescaling a spectrum moves no eigenvalue.
EDGE_TOLERANCE = 1e-12
# The log-density resolves a quarter of an octave; finer structure of an estimate is its nodes, not the density.
CELLS_PER_OCTAVE = 4


@runtime_checkable
class LogMeasure(Protocol):
    """A distribution on [μ, L] known by formula, such as a power law."""

    @property
    def mu(self) -> float: ...  # noqa: D102
    @property
    def L(self) -> float: ...  # noqa: D102, N802
    def cumulative(self, eigenvalues: Array) -> Array:
        """The share of eigenvalues up to each of ``eigenvalues``."""


@dataclass(frozen=True, eq=False)
class Groups:
    r"""The non-empty groups :math:`[\mu\beta^i, \mu\beta^{i+1})` of a spectrum.

    Attributes:
        index: i, increasing.
        share: :math:`s_i / d`, the share of the eigenvalues in the group; sums to 1.
        lower: :math:`\mu\beta^i`, the group's lower edge.
        beta: the ratio of a group's edges.
    """

    index: IntArray
    share: Array
    lower: Array
    beta: float

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True, eq=False)
class LogDensity:
    r"""A smooth density p(u) of :math:`u = \ln\lambda` between :math:`\ln\mu` and :math:`\ln L`.

    ``edges`` cut that range into equal cells and ``cumulative`` is the share of eigenvalues below each edge.
    Calling it gives p(u), the slope of the monotone cubic (PCHIP) through them; zero outside.
    """

    edges: Array
    cumulative: Array

    def __call__(self, u: float | Array) -> Array:
        """The density at ``u``."""
        slope = PchipInterpolator(self.edges, self.cumulative).derivative()
        inside = (np.asarray(u) >= self.edges[0]) & (np.asarray(u) <= self.edges[-1])
        return np.where(inside, np.maximum(slope(np.clip(u, self.edges[0], self.edges[-1])), 0.0), 0.0)


def octave_index(eigenvalues: float | Array, mu: float, beta: float = 2.0) -> IntArray:
    r"""The i of the octave :math:`[\mu\beta^i, \mu\beta^{i+1})` that each eigenvalue belongs to.

    A relative distance below 1e-12 from the octave above counts as rounding: such an eigenvalue belongs there.

    >>> octave_index(np.array([1.0, 1.9, 2.0, 9.0]), mu=1.0)
    array([0, 0, 1, 3])
    """
    heights = np.log(np.asarray(eigenvalues) / mu)
    return np.asarray(np.floor((heights + EDGE_TOLERANCE) / math.log(beta)), dtype=np.int64)


def group(spectrum: Spectrum | LogMeasure, beta: float = 2.0) -> Groups:
    r"""Count the eigenvalues in :math:`[\mu\beta^i, \mu\beta^{i+1})`.

    .. math:: s_i = \#\{\lambda_j \in [\mu\beta^i, \mu\beta^{i+1})\}

    The largest eigenvalue counts too where :math:`\kappa` is a power of β and it stands on the last edge, which
    the paper's :math:`I_{\max} = \log_2\kappa` ranges leave out.

    Args:
        spectrum: positive, from :func:`prepare`; or a power law.
        beta: above 1.

    Reference: arXiv:2110.14109, Eq. (def_si), with β as in its Appendix "Basic Settings".

    >>> from eigencurve import Spectrum
    >>> g = group(Spectrum([1.0, 1.9, 2.0, 9.0], [1, 1, 1, 1]))
    >>> g.index, g.share, g.lower
    (array([0, 1, 3]), array([0.5 , 0.25, 0.25]), array([1., 2., 8.]))
    """
    ratio = _check.real("group", "beta", beta)
    if ratio <= 1:
        _check.refuse("group", "beta", "> 1", ratio, "The limit beta = 1 has a density, not groups: see log_density.")
    require_positive("group", spectrum)
    index, share = (
        _formula_shares(spectrum, ratio) if isinstance(spectrum, LogMeasure) else _node_shares(spectrum, ratio)
    )
    return Groups(index, frozen(share), frozen(spectrum.mu * ratio ** index.astype(np.float64)), ratio)


def extra_term(spectrum: Spectrum | LogMeasure, beta: float = 2.0) -> float:
    r"""How far from the minimax rate dσ²/T the schedule is guaranteed to stay.

    .. math:: \frac{\bigl(\sum_i \sqrt{s_i}\bigr)^2}{d}

    1 where all eigenvalues share a group; at most the number of groups. The weights of a spectrum sum to 1; for
    densities that sum to c the formula gives c times as much, and the paper's table is made so.

    Reference: arXiv:2110.14109, Theorem 1 and Appendix "Exact Value of the Extra Term".

    >>> from eigencurve import Spectrum
    >>> round(extra_term(Spectrum([1.0, 2.0], [16, 9])), 12)
    1.96
    """
    return math.fsum(np.sqrt(group(spectrum, beta).share)) ** 2


def log_density(spectrum: Spectrum | LogMeasure) -> LogDensity:
    r"""The smooth density of :math:`u = \ln\lambda` that the limit β → 1 needs.

    The weight of each eigenvalue is spread between the midpoints (in u) to its neighbours; the distribution
    function through those midpoints, interpolated monotonically, is then read off at cells of a quarter octave.
    So the density depends on where the weight lies and not on how many eigenvalues carry it.

    Raises:
        ValueError: fewer than two distinct eigenvalues (κ = 1).
    """
    require_positive("log_density", spectrum)
    span = math.log(spectrum.L / spectrum.mu)
    if span <= EDGE_TOLERANCE:
        _check.refuse("log_density", "spectrum", "of condition number kappa > 1", spectrum.L / spectrum.mu)
    num_cells = max(2, math.ceil(span / math.log(2) * CELLS_PER_OCTAVE - EDGE_TOLERANCE))
    heights = np.linspace(0.0, span, num_cells + 1)
    if isinstance(spectrum, LogMeasure):
        below = spectrum.cumulative(spectrum.mu * np.exp(heights[1:-1]))
    else:
        below = _node_cumulative(spectrum, heights[1:-1])
    return LogDensity(frozen(heights + math.log(spectrum.mu)), frozen(np.concatenate(([0.0], below, [1.0]))))


def require_positive(function: str, spectrum: Spectrum | LogMeasure) -> None:
    """Raise, with the remedy, unless ``spectrum`` has a smallest eigenvalue above zero."""
    if not (hasattr(spectrum, "mu") and hasattr(spectrum, "L")):
        raise TypeError(_check.sentence(function, "spectrum", "a Spectrum or a PowerLaw", spectrum))
    if spectrum.mu <= 0:
        remedy = "Call prepare with a weight decay above 0, or with negatives='drop'."
        _check.refuse(function, "spectrum", "positive (smallest eigenvalue mu > 0)", spectrum.mu, remedy)


def _node_shares(spectrum: Spectrum, beta: float) -> tuple[IntArray, Array]:
    used, place = np.unique(octave_index(spectrum.eigenvalues, spectrum.mu, beta), return_inverse=True)
    share: Array = np.bincount(place, weights=spectrum.weights).astype(np.float64)
    return used[share > 0], share[share > 0]


def _formula_shares(measure: LogMeasure, beta: float) -> tuple[IntArray, Array]:
    num_groups = 1 + int(octave_index(measure.L, measure.mu, beta))
    edges = np.minimum(measure.mu * beta ** np.arange(num_groups + 1.0), measure.L)
    share = np.diff(measure.cumulative(edges))
    index = np.arange(num_groups, dtype=np.int64)
    return index[share > 0], share[share > 0]


def _node_cumulative(spectrum: Spectrum, heights: Array) -> Array:
    """The distribution function at ln(λ/μ) = ``heights``, each weight spread over the cell of its eigenvalue."""
    nodes = np.log(spectrum.eigenvalues / spectrum.mu)
    # Between eigenvalues a rounding apart there is no room for a midpoint: they count as one.
    first = np.append(True, np.diff(nodes) > EDGE_TOLERANCE * nodes[-1])
    distinct, weights = nodes[first], np.bincount(np.cumsum(first) - 1, weights=spectrum.weights)
    middles = (distinct[1:] + distinct[:-1]) / 2
    knots = np.concatenate((distinct[:1], middles, distinct[-1:]))
    below = np.concatenate(([0.0], np.cumsum(weights[:-1]), [1.0]))
    return np.asarray(np.clip(PchipInterpolator(knots, below)(heights), 0.0, 1.0))
