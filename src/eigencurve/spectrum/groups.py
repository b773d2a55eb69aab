"""Eigenvalues grouped by powers of β: the counts s_i, the extra term, and the log-density for the limit β → 1."""

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

# An eigenvalue this close below the edge of a group belongs to it, so rescaling a spectrum moves none to another group.
EDGE_TOLERANCE = 1e-12
# The log-density resolves a quarter of an octave; finer structure of an estimate comes from its nodes.
CELLS_PER_OCTAVE = 4


@runtime_checkable
class LogMeasure(Protocol):
    """A distribution on [μ, L] that is given by a formula, such as a power law."""

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
        index: Index i of each group, increasing.
        share: Share :math:`s_i / d` of the eigenvalues in each group; sums to 1.
        lower: Lower edge :math:`\mu\beta^i` of each group.
        beta: Ratio of the edges of a group.
    """

    index: IntArray
    share: Array
    lower: Array
    beta: float

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return f"Groups({len(self.index)} groups from {self.lower[0]:.4g} to {self.lower[-1]:.4g})"


@dataclass(frozen=True, eq=False)
class LogDensity:
    r"""A smooth density p(u) of :math:`u = \ln\lambda` between :math:`\ln\mu` and :math:`\ln L`.

    Calling it gives p(u), the slope of the monotone cubic interpolant (PCHIP) of ``cumulative``; zero outside.

    Attributes:
        edges: Edges of equal cells of u between ln μ and ln L.
        cumulative: Share of eigenvalues below each edge.
    """

    edges: Array
    cumulative: Array

    def __call__(self, u: float | Array) -> Array:
        """The density at ``u``."""
        slope = PchipInterpolator(self.edges, self.cumulative).derivative()
        inside = (np.asarray(u) >= self.edges[0]) & (np.asarray(u) <= self.edges[-1])
        return np.where(inside, np.maximum(slope(np.clip(u, self.edges[0], self.edges[-1])), 0.0), 0.0)

    def __repr__(self) -> str:
        low, high = np.exp(self.edges[[0, -1]])
        return f"LogDensity({len(self.edges) - 1} cells from {low:.4g} to {high:.4g})"


def octave_index(eigenvalues: float | Array, mu: float, beta: float = 2.0) -> IntArray:
    r"""The i of the octave :math:`[\mu\beta^i, \mu\beta^{i+1})` that each eigenvalue belongs to.

    ``beta`` is the ratio of an octave's edges. An eigenvalue that is below the next edge by a relative 1e-12 or less,
    as after rounding, counts as on that edge.

    >>> octave_index(np.array([1.0, 1.9, 2.0, 9.0]), mu=1.0)
    array([0, 0, 1, 3])
    """
    heights = np.log(np.asarray(eigenvalues) / mu)
    return np.asarray(np.floor((heights + EDGE_TOLERANCE) / math.log(beta)), dtype=np.int64)


def group(spectrum: Spectrum | LogMeasure, beta: float = 2.0) -> Groups:
    r"""Count the eigenvalues in :math:`[\mu\beta^i, \mu\beta^{i+1})`.

    .. math:: s_i = \#\{\lambda_j \in [\mu\beta^i, \mu\beta^{i+1})\}

    If :math:`\kappa` is a power of β, the largest eigenvalue is on the last edge and gets a group of its own. The
    paper's :math:`I_{\max} = \log_2\kappa` ranges leave it out.

    Args:
        spectrum: Positive spectrum from :func:`prepare`, or a power law.
        beta: Ratio of the edges of a group, above 1.

    Reference: arXiv:2110.14109, Eq. (def_si), with β as in its Appendix "Basic Settings".

    >>> from eigencurve import Spectrum
    >>> g = group(Spectrum([1.0, 1.9, 2.0, 9.0], [1, 1, 1, 1]))
    >>> g.index, g.share, g.lower
    (array([0, 1, 3]), array([0.5 , 0.25, 0.25]), array([1., 2., 8.]))
    """
    ratio = _check.real("group", "beta", beta)
    if ratio <= 1:
        _check.refuse("group", "beta", "> 1", ratio, "For the limit beta = 1 use log_density.")
    require_positive("group", spectrum)
    index, share = (
        _formula_shares(spectrum, ratio) if isinstance(spectrum, LogMeasure) else _node_shares(spectrum, ratio)
    )
    return Groups(index, frozen(share), frozen(spectrum.mu * ratio ** index.astype(np.float64)), ratio)


def extra_term(spectrum: Spectrum | LogMeasure, beta: float = 2.0) -> float:
    r"""The factor between the guarantee for Eigencurve and the minimax rate dσ²/T.

    .. math:: \frac{\bigl(\sum_i \sqrt{s_i}\bigr)^2}{d}

    It is between 1, if all eigenvalues are in one group, and the number of groups. The weights of a spectrum sum to 1;
    the paper's table uses densities that sum to some c, which multiplies the result by c.

    Reference: arXiv:2110.14109, Theorem 1 and Appendix "Exact Value of the Extra Term".

    >>> from eigencurve import Spectrum
    >>> round(extra_term(Spectrum([1.0, 2.0], [16, 9])), 12)
    1.96
    """
    return math.fsum(np.sqrt(group(spectrum, beta).share)) ** 2


def log_density(spectrum: Spectrum | LogMeasure) -> LogDensity:
    r"""The smooth density of :math:`u = \ln\lambda` for the limit β → 1.

    The weight of each eigenvalue is spread between the midpoints (in u) to its neighbours. The distribution function
    through those midpoints is interpolated monotonically and evaluated on cells of a quarter octave. So the density
    depends on where the weight is, not on how many eigenvalues represent it.

    Raises:
        ValueError: All eigenvalues are equal (κ = 1), apart from rounding.
    """
    require_positive("log_density", spectrum)
    span = math.log(spectrum.L / spectrum.mu)
    if span <= EDGE_TOLERANCE:
        need = f"of condition number kappa > 1 + {EDGE_TOLERANCE:g}"
        _check.refuse("log_density", "spectrum", need, spectrum.L / spectrum.mu)
    num_cells = max(2, math.ceil(span / math.log(2) * CELLS_PER_OCTAVE - EDGE_TOLERANCE))
    heights = np.linspace(0.0, span, num_cells + 1)
    if isinstance(spectrum, LogMeasure):
        below = spectrum.cumulative(spectrum.mu * np.exp(heights[1:-1]))
    else:
        below = _node_cumulative(spectrum, heights[1:-1])
    return LogDensity(frozen(heights + math.log(spectrum.mu)), frozen(np.concatenate(([0.0], below, [1.0]))))


def require_positive(function: str, spectrum: Spectrum | LogMeasure) -> None:
    """Raise ValueError if the smallest eigenvalue of ``spectrum`` is not above zero, or κ is not finite."""
    if not (hasattr(spectrum, "mu") and hasattr(spectrum, "L")):
        _check.wrong_type(function, "spectrum", "a Spectrum or a PowerLaw", spectrum)
    if spectrum.mu <= 0:
        remedy = "Call prepare with a weight decay above 0, or with negatives='drop'."
        _check.refuse(function, "spectrum", "positive (smallest eigenvalue mu > 0)", spectrum.mu, remedy)
    if spectrum.L / np.finfo(np.float64).max > spectrum.mu:
        remedy = "Call prepare with a weight decay that is large enough."
        ends = f"mu = {spectrum.mu:.4g} and L = {spectrum.L:.4g}"
        _check.refuse(function, "spectrum", "of a condition number that float64 can hold", ends, remedy)


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
    """The distribution function at ln(λ/μ) = ``heights``, with each weight spread over the cell of its eigenvalue."""
    nodes = np.log(spectrum.eigenvalues / spectrum.mu)
    # Eigenvalues that differ by rounding count as one: there is no float between them for the midpoint.
    first = np.append(True, np.diff(nodes) > EDGE_TOLERANCE * nodes[-1])
    distinct, weights = nodes[first], np.bincount(np.cumsum(first) - 1, weights=spectrum.weights)
    middles = (distinct[1:] + distinct[:-1]) / 2
    knots = np.concatenate((distinct[:1], middles, distinct[-1:]))
    below = np.concatenate(([0.0], np.cumsum(weights[:-1]), [1.0]))
    return np.asarray(np.clip(PchipInterpolator(knots, below)(heights), 0.0, 1.0))
