"""Fit a smooth measure to the moments that a Lanczos tridiagonal determines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator

from eigencurve._arrays import Array, IntArray
from eigencurve._process import on_one_blas_thread
from eigencurve.spectrum.log_grid import LogGrid, bulk_ends, log_grid, supported, without_atom

_CURVATURES = (0.1, 1.0)  # range of τ; a larger one fits the edges of the bulk better, but misleads near zero
_SLOPE, _SLOPE_ERROR = 1.0, 0.5  # of the log-density at zero; with slope 1, the density of λ is finite there
_MAX_NOISE = 0.1
_ATOM_MASSES = 10
_IMPROBABLE = 20.0  # cost above the smallest one at which heavier atoms are not tried
_EXACT_MOMENTS = 3
_TILTS = 10
# Smallest relative eigenvalue of A diag(q) Aᵀ, rows scaled to variance 1; those below it belong to the converged nodes.
_RANK_TOLERANCE = 1e-7
_METRIC_UPDATES = 4
_VARIANCE_UPDATES = 6
_ATTEMPTS = 4  # a fit whose noise is above _MAX_NOISE has often not converged, and another one starts from it
_NEWTON_STEPS = 20
_COST_TOLERANCE = 0.05  # the cost is a χ²: 1 is one standard deviation
_LARGEST_STEP = 2.0
_STUCK = 1e8
_RIDGE = 1e-8


@dataclass(frozen=True)
class Variances:
    """Variance σ² of the noise in a mass relative to that mass, and variance τ² of the curvature of the log-density."""

    noise: float
    curvature: float


@dataclass(frozen=True)
class MomentProblem:
    """The problem of finding z with rows @ masses(z) = values + noise, where the noise is white with variance σ²."""

    grid: LogGrid
    rows: Array
    values: Array


@dataclass(frozen=True)
class Fit:
    """A vector of coefficients z, its masses, and the residual ``values - rows @ masses``."""

    coefficients: Array
    masses: Array
    residual: Array


@on_one_blas_thread
def fit_bulk(
    alphas: Array,
    betas: Array,
    nodes: Array,
    vectors: Array,
    bulk: IntArray,
    scale: float,
    smoothness: float | None = None,
) -> tuple[Array, Array]:
    r"""Points and masses of the bulk of a spectrum, from the tridiagonal's moments.

    Seen through one start vector, n eigenvalues are a smooth density plus white noise whose variance is σ² times the
    mass, with σ² ~ 1/n. The coefficients z of the log-density maximise the posterior

    .. math:: -2\log p = (b - Aq)^\top (\sigma^2 A\,\mathrm{diag}(q)A^\top)^{-1} (b - Aq) + z^\top P z/\tau^2
              + \sum_\pm (g'_\pm - 1)^2/0.5^2

    where A, b come from :func:`known_moments` and q, P from :class:`LogGrid`. The last term prefers a density of λ that
    is finite at zero: there, the slope g' of the log-density of ln|λ| is 1. σ² and τ² maximise the evidence (MacKay,
    Neural Comput. 4, 1992). The moments hardly distinguish an atom at zero from a peak. So the result is an average
    over the mass of the atom, uniform up to the Christoffel bound, with each fit weighted by its posterior. A final
    correction of order σ makes mass, mean and second moment exact.

    If σ > 0.1, the bulk has only about a hundred eigenvalues or has no smooth density, and its nodes are returned
    unchanged. The same happens if the final correction fails.

    Args:
        alphas: Diagonal of the tridiagonal matrix.
        betas: Off-diagonal of the tridiagonal matrix.
        nodes: Eigenvalues of the tridiagonal matrix.
        vectors: Eigenvectors of the tridiagonal matrix, in columns.
        bulk: Indices of the nodes that have not converged.
        scale: Value of |λ| below which it does not matter how the mass is distributed.
        smoothness: Standard deviation τ; None for the value in [0.1, 1] with the largest evidence.

    Returns:
        Points and non-negative masses; the masses sum to the weight of the bulk's nodes.
    """
    weights = vectors[0, bulk] ** 2
    grid = log_grid(nodes[bulk], scale)
    grid = supported(grid, christoffel(grid.points, alphas, betas))
    rows, values = known_moments(grid.points, alphas, betas, vectors[:, bulk])
    start = interpolated_masses(grid, nodes[bulk], weights, scale)
    problem, fit, variances = _smooth_fit(grid, rows, values, start, smoothness)
    masses = fit.masses
    if grid.has_atom:
        largest = min(float(christoffel(np.zeros(1), alphas, betas)[0]), float(weights.sum()))
        masses = _average_over_atoms(problem, fit, variances, largest)
    rows, values = rows[:_EXACT_MOMENTS], values[:_EXACT_MOMENTS]
    masses = reconciled(masses, rows, values)
    smooth = variances.noise <= _MAX_NOISE**2 and np.allclose(rows @ masses, values, rtol=0, atol=1e-6)
    return (grid.points, masses) if smooth else (nodes[bulk], weights)


def orthonormal_polynomials(x: Array, alphas: Array, betas: Array, largest: float = 1e100) -> Array:
    r"""The orthonormal polynomials p_0 … p_{k-1} of the tridiagonal, one per row, clipped to ±largest.

    .. math:: \beta_j p_j(x) = (x - \alpha_{j-1})\, p_{j-1}(x) - \beta_{j-1} p_{j-2}(x), \qquad p_0 = 1
    """
    p = np.ones((len(alphas), len(x)))
    for j in range(1, len(alphas)):
        before = betas[j - 2] * p[j - 2] if j > 1 else 0.0
        p[j] = np.clip(((x - alphas[j - 1]) * p[j - 1] - before) / betas[j - 1], -largest, largest)
    return p


def christoffel(x: Array, alphas: Array, betas: Array) -> Array:
    """The Christoffel function 1/Σ_j p_j(x)², the largest mass that a measure with these moments can have at x."""
    return np.asarray(1 / np.sum(orthonormal_polynomials(x, alphas, betas) ** 2, axis=0))


def known_moments(points: Array, alphas: Array, betas: Array, vectors: Array) -> tuple[Array, Array]:
    r"""A and b of the equations A q = b for the moments up to degree 2k - 2 of the masses q of the bulk.

    .. math:: \sum_i q_i\, p_j(x_i) = \sum_a S_{0a} S_{ja}, \qquad
              \sum_i q_i\, p_{k-1}(x_i)\, p_j(x_i) = \sum_a S_{k-1,a} S_{ja}

    where a runs over the nodes of the bulk. Over all nodes the sums on the right would be δ_{0j} and δ_{k-1,j}. The
    converged nodes count as eigenvalues and are left out on both sides.
    """
    p, s = orthonormal_polynomials(points, alphas, betas), vectors
    return np.concatenate([p, p[-1] * p[1:]]), np.concatenate([s @ s[0], s[1:] @ s[-1]])


def interpolated_masses(grid: LogGrid, nodes: Array, weights: Array, scale: float) -> Array:
    """A first guess: PCHIP in asinh(λ/scale) through the middle of each jump of the distribution function."""
    low, high = bulk_ends(nodes)
    u = np.arcsinh(np.concatenate([[low], nodes, [high]]) / scale)
    total = weights.sum()
    jumps = np.concatenate([[0.0], np.cumsum(weights) - weights / 2, [total]])
    density = np.maximum(PchipInterpolator(u, jumps).derivative()(np.arcsinh(grid.points / scale)), 0)
    masses = grid.widths * density * np.abs(grid.points) / np.hypot(grid.points, scale)
    if grid.has_atom:
        masses[-1] = max(total - masses[:-1].sum(), 1e-3 * total)
    masses = np.maximum(masses, 1e-9 * total * grid.widths / grid.widths.sum())
    return np.asarray(masses * total / masses.sum())


def reconciled(masses: Array, rows: Array, values: Array) -> Array:
    """The masses q exp(Aᵀμ) that satisfy A q exp(Aᵀμ) = b, closest to q in relative entropy (Newton's method)."""
    for _ in range(_TILTS):
        multipliers = np.linalg.lstsq((rows * masses) @ rows.T, values - rows @ masses, rcond=1e-12)[0]
        masses = masses * np.exp(np.clip(multipliers @ rows, -1, 1))
    return masses


def _whitened(grid: LogGrid, rows: Array, values: Array, masses: Array) -> MomentProblem:
    """The moments in a basis in which A diag(q) Aᵀ = I, without the combinations that vanish on the bulk."""
    scale = 1 / np.sqrt(rows**2 @ masses)
    rows, values = rows * scale[:, None], values * scale
    variances, axes = np.linalg.eigh((rows * masses) @ rows.T)
    kept = variances > _RANK_TOLERANCE * variances[-1]
    whitener = (axes[:, kept] / np.sqrt(variances[kept])).T
    return MomentProblem(grid, whitener @ rows, whitener @ values)


def _smooth_fit(
    grid: LogGrid, rows: Array, values: Array, masses: Array, smoothness: float | None
) -> tuple[MomentProblem, Fit, Variances]:
    """The first of several fits, each of which starts from the one before, with little noise; otherwise the last."""
    for _ in range(_ATTEMPTS):
        problem, fit, variances = _fit_with_variances(grid, rows, values, masses, smoothness)
        masses = fit.masses
        if variances.noise <= _MAX_NOISE**2:
            break
    return problem, fit, variances


def _fit_with_variances(
    grid: LogGrid, rows: Array, values: Array, masses: Array, smoothness: float | None
) -> tuple[MomentProblem, Fit, Variances]:
    """Alternate between the metric A diag(q) Aᵀ of the noise, the variances, and the fit."""
    variances = Variances(1e-5, smoothness**2 if smoothness else 0.25)
    z = _log_coefficients(grid, masses)
    for _ in range(_METRIC_UPDATES):
        problem = _whitened(grid, rows, values, masses)
        for _ in range(_VARIANCE_UPDATES):
            fit, before = _maximise(problem, z, variances), variances
            z, variances = fit.coefficients, _updated(problem, fit, variances, smoothness)
            if abs(np.log(variances.noise / before.noise)) < 0.1:
                break
        masses = fit.masses
    return problem, fit, variances


def _updated(problem: MomentProblem, fit: Fit, variances: Variances, smoothness: float | None) -> Variances:
    r"""One update of the variances towards larger evidence (MacKay 1992).

    .. math:: \sigma^2 = |r|^2 / (m - \gamma), \qquad \tau^2 = z^\top P z / \gamma_P

    for m moments that determine γ directions of z, γ_P of them in the range of P.
    """
    penalty, z = problem.grid.penalty, fit.coefficients
    jacobian = _jacobian(problem, fit)
    information = jacobian.T @ jacobian
    covariance = np.linalg.inv(_hessian(problem, information, variances))
    fitted = np.sum(covariance * information) / variances.noise
    determined = max(problem.grid.rank - np.sum(covariance * penalty) / variances.curvature, 1.0)
    noise = max(float(fit.residual @ fit.residual / max(len(fit.residual) - fitted, 1.0)), 1e-16)
    low, high = _CURVATURES if smoothness is None else (smoothness, smoothness)
    return Variances(noise, float(np.clip(z @ penalty @ z / determined, low**2, high**2)))


def _average_over_atoms(problem: MomentProblem, fit: Fit, variances: Variances, largest: float) -> Array:
    """Weighted mean of ten fits, with the mass of the atom at zero fixed at values between 0 and ``largest``."""
    grid, z = without_atom(problem.grid), fit.coefficients[:-1]
    costs, measures = [], []
    for mass in largest * (np.arange(_ATOM_MASSES) + 0.5) / _ATOM_MASSES:
        rest = MomentProblem(grid, problem.rows[:, :-1], problem.values - mass * problem.rows[:, -1])
        fit = _maximise(rest, z, variances)
        z = fit.coefficients
        costs.append(_cost(rest, fit, variances))
        measures.append(np.append(fit.masses, mass))
        if costs[-1] > min(costs) + _IMPROBABLE:
            break
    posterior = np.exp((min(costs) - np.array(costs)) / 2)
    return np.asarray(posterior @ np.array(measures) / posterior.sum())


def _maximise(problem: MomentProblem, z: Array, variances: Variances) -> Fit:
    """Maximise the posterior from z by Levenberg-Marquardt, to a small fraction of the posterior's width."""
    fit, damping = _evaluated(problem, z), 1e-6
    for _ in range(_NEWTON_STEPS):
        before = fit
        fit, damping = _step(problem, before, variances, damping)
        if _cost(problem, before, variances) - _cost(problem, fit, variances) < _COST_TOLERANCE:
            break
    return fit


def _step(problem: MomentProblem, fit: Fit, variances: Variances, damping: float) -> tuple[Fit, float]:
    """One step that does not increase the cost, and the damping for the next step."""
    z, limit = fit.coefficients, _cost(problem, fit, variances)
    jacobian = _jacobian(problem, fit)
    hessian = _hessian(problem, jacobian.T @ jacobian, variances)
    slope = jacobian.T @ fit.residual / variances.noise - problem.grid.penalty @ z / variances.curvature
    slope -= problem.grid.slopes.T @ (problem.grid.slopes @ z - _SLOPE) / _SLOPE_ERROR**2
    while damping < _STUCK:
        step = np.linalg.solve(hessian + damping * np.diag(hessian.diagonal()), slope)
        trial = _evaluated(problem, z + step * _LARGEST_STEP / max(np.abs(step).max(), _LARGEST_STEP))
        if _cost(problem, trial, variances) <= limit:
            return trial, damping / 10
        damping = max(10 * damping, 1e-7)
    return fit, damping


def _evaluated(problem: MomentProblem, z: Array) -> Fit:
    masses = problem.grid.widths * np.exp(np.clip(problem.grid.basis @ z, -100, 20))
    return Fit(z, masses, problem.values - problem.rows @ masses)


def _cost(problem: MomentProblem, fit: Fit, variances: Variances) -> float:
    """The cost |r|²/σ² + zᵀPz/τ² + Σ(g' - 1)²/0.5²."""
    z, r, grid = fit.coefficients, fit.residual, problem.grid
    excess = grid.slopes @ z - _SLOPE
    return float(
        r @ r / variances.noise + z @ grid.penalty @ z / variances.curvature + excess @ excess / _SLOPE_ERROR**2
    )


def _jacobian(problem: MomentProblem, fit: Fit) -> Array:
    """The Jacobian ∂(A q)/∂z."""
    return np.asarray((problem.grid.basis.T @ (problem.rows * fit.masses).T).T)


def _hessian(problem: MomentProblem, information: Array, variances: Variances) -> Array:
    """Half the second derivative of the cost, with a ridge for directions that nothing determines."""
    grid, ridge = problem.grid, _RIDGE * np.eye(len(information))
    slopes = grid.slopes.T @ grid.slopes / _SLOPE_ERROR**2
    return np.asarray(information / variances.noise + grid.penalty / variances.curvature + slopes + ridge)


def _log_coefficients(grid: LogGrid, masses: Array) -> Array:
    """Coefficients of a log-density close to these masses, by weighted least squares with a little smoothing."""
    weighted = grid.basis.T * masses
    smoothing = 1e-6 * masses.sum() * (grid.penalty + 1e-6 * np.eye(len(grid.penalty)))
    target = weighted @ np.log(masses / grid.widths)
    return np.asarray(np.linalg.solve(weighted @ grid.basis + smoothing, target))
