"""The steps of the fit; test_quadrature.py tests the resulting spectra."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.reference.lanczos import lanczos_of_spectrum

from eigencurve.spectrum import moment_fit
from eigencurve.spectrum.log_grid import log_grid
from eigencurve.spectrum.moment_fit import (
    christoffel,
    fit_bulk,
    interpolated_masses,
    known_moments,
    orthonormal_polynomials,
    reconciled,
)
from eigencurve.spectrum.quadrature import gauss_quadrature

RNG = np.random.default_rng(0)
EIGENVALUES = np.sort(np.exp(RNG.normal(-3, 1.5, 2000)) * np.where(RNG.random(2000) < 0.4, -1.0, 1.0))
WEIGHTS = np.full(2000, 1 / 2000)
ALPHAS, BETAS = lanczos_of_spectrum(EIGENVALUES, WEIGHTS, 40)
NODES, VECTORS = np.linalg.eigh(np.diag(ALPHAS) + np.diag(BETAS[:-1], 1) + np.diag(BETAS[:-1], -1))
# A spectrum without outliers, on which the recurrence of the polynomials loses no digits.
COMPACT = RNG.uniform(-1, 2, 2000)
COMPACT_ALPHAS, COMPACT_BETAS = lanczos_of_spectrum(COMPACT, WEIGHTS, 20)


def test_the_polynomials_are_orthonormal_on_the_spectrum():
    p = orthonormal_polynomials(COMPACT, COMPACT_ALPHAS, COMPACT_BETAS)
    assert_allclose((p * WEIGHTS) @ p.T, np.eye(20), atol=1e-9)


def test_the_christoffel_function_is_the_gauss_weight_at_a_node_and_bounds_every_mass():
    nodes, weights = gauss_quadrature(COMPACT_ALPHAS, COMPACT_BETAS)
    assert_allclose(christoffel(nodes, COMPACT_ALPHAS, COMPACT_BETAS), weights, rtol=1e-9)
    assert (christoffel(COMPACT, COMPACT_ALPHAS, COMPACT_BETAS) >= WEIGHTS).all()


def test_the_spectrum_itself_has_the_known_moments():
    matrix = np.diag(COMPACT_ALPHAS) + np.diag(COMPACT_BETAS[:-1], 1) + np.diag(COMPACT_BETAS[:-1], -1)
    rows, values = known_moments(COMPACT, COMPACT_ALPHAS, COMPACT_BETAS, np.linalg.eigh(matrix).eigenvectors)
    assert rows.shape == (2 * 20 - 1, 2000)
    assert_allclose(rows @ WEIGHTS, values, atol=1e-9)


def test_the_first_guess_is_a_measure_of_the_right_mass():
    weights = VECTORS[0] ** 2
    masses = interpolated_masses(log_grid(NODES, 1e-3), NODES, weights, 1e-3)
    assert (masses > 0).all()
    assert masses.sum() == pytest.approx(1)


def test_reconciled_masses_have_the_moments_and_stay_positive():
    points = np.linspace(-1, 2, 50)
    rows = np.stack((np.ones(50), points, points**2))
    values = np.array([1.0, 0.4, 0.8])
    masses = reconciled(np.full(50, 1 / 40), rows, values)
    assert (masses > 0).all()
    assert_allclose(rows @ masses, values, rtol=1e-10)
    assert_allclose(reconciled(masses, rows, values), masses, rtol=1e-9)


def test_the_fit_of_the_whole_spectrum_is_close_to_its_distribution():
    points, masses = fit_bulk(ALPHAS, BETAS, NODES, VECTORS, slice(0, 40), scale=1e-3)
    assert len(points) > 100  # a density, not the nodes
    assert masses.sum() == pytest.approx(1, abs=1e-6)
    for edge in (-0.3, -0.03, 0.0, 0.03, 0.3):
        assert masses[points < edge].sum() == pytest.approx((edge > EIGENVALUES).mean(), abs=0.03)


def test_a_bulk_without_a_density_is_returned_as_its_nodes():
    """Thirty eigenvalues of very different weights after 20 steps: σ is far above 0.1."""
    rng = np.random.default_rng(1)
    alphas, betas = lanczos_of_spectrum(rng.standard_normal(30), rng.random(30) ** 6, 20)
    nodes, vectors = np.linalg.eigh(np.diag(alphas) + np.diag(betas[:-1], 1) + np.diag(betas[:-1], -1))
    points, masses = fit_bulk(alphas, betas, nodes, vectors, slice(3, 17), scale=1e-2)
    assert_allclose(points, nodes[3:17])
    assert_allclose(masses, vectors[0, 3:17] ** 2)


def test_a_correction_that_fails_returns_the_nodes(monkeypatch):
    monkeypatch.setattr(moment_fit, "reconciled", lambda masses, *_: 1.01 * masses)
    points, masses = fit_bulk(ALPHAS, BETAS, NODES, VECTORS, slice(0, 40), scale=1e-3)
    assert_allclose(points, NODES)
    assert_allclose(masses, VECTORS[0] ** 2)


def test_a_fit_that_has_not_converged_goes_on_from_there(monkeypatch):
    starts, results, fit = [], [], moment_fit._fit_with_variances

    def noisy_at_first(grid, rows, values, masses, smoothness):
        starts.append(masses)
        problem, found, variances = fit(grid, rows, values, masses, smoothness)
        results.append(found.masses)
        return problem, found, replace(variances, noise=1.0) if len(starts) == 1 else variances

    monkeypatch.setattr(moment_fit, "_fit_with_variances", noisy_at_first)
    points, _ = fit_bulk(ALPHAS, BETAS, NODES, VECTORS, np.arange(40), 1e-3)
    assert len(starts) == 2
    assert starts[1] is results[0]
    assert len(points) > len(NODES)


def test_noise_above_a_tenth_returns_the_nodes(monkeypatch):
    monkeypatch.setattr(moment_fit, "_MAX_NOISE", 1e-9)
    points, _ = fit_bulk(ALPHAS, BETAS, NODES, VECTORS, slice(0, 40), scale=1e-3)
    assert_allclose(points, NODES)


@pytest.mark.parametrize("smoothness", [None, 0.2])
def test_the_fit_is_the_maximum_of_its_posterior(smoothness):
    grid = log_grid(NODES, 1e-3)
    rows, values = known_moments(grid.points, ALPHAS, BETAS, VECTORS)
    start = interpolated_masses(grid, NODES, VECTORS[0] ** 2, 1e-3)
    problem, fit, variances = moment_fit._fit_with_variances(grid, rows, values, start, smoothness)
    fit = moment_fit._maximise(problem, fit.coefficients, variances)
    z, size = fit.coefficients, 1e-4

    def cost(place, change):
        moved = z + change * (np.arange(len(z)) == place)
        return moment_fit._cost(problem, moment_fit._evaluated(problem, moved), variances)

    slope = np.array([(cost(i, size) - cost(i, -size)) / (2 * size) for i in range(len(z))])
    jacobian = moment_fit._jacobian(problem, fit)
    hessian = 2 * moment_fit._hessian(problem, jacobian.T @ jacobian, variances)
    # What another Newton step would gain; 1 is the cost of moving by one standard deviation of the posterior. The
    # last coefficient, the logarithm of the atom's mass, is not determined if the mass is negligible.
    assert slope[:-1] @ np.linalg.solve(hessian[:-1, :-1], slope[:-1]) / 2 < 0.3
