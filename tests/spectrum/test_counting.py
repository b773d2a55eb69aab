import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.reference.lanczos import lanczos_of_spectrum

import eigencurve as ec
from eigencurve.spectrum.counting import MAX_WEIGHT, counted_nodes, nearest_nodes, recounted
from eigencurve.spectrum.quadrature import sharpen, sharpen_and_count

WEIGHT_DECAY, STEPS, DIM, NUM_OUTLIERS = 5e-4, 39_100, 20_000, 40


def probe(eigenvalues, num_steps, seed):
    """The tridiagonal that a random probe gives."""
    weights = np.random.default_rng(100 + seed).standard_normal(len(eigenvalues)) ** 2
    return lanczos_of_spectrum(eigenvalues, weights, num_steps)


def log_curve(spectrum):
    return np.log(ec.eigencurve(ec.spectrum.prepare(spectrum, WEIGHT_DECAY), STEPS, lr=1.0).values())


def exact(eigenvalues):
    return log_curve(ec.Spectrum(eigenvalues, np.ones(len(eigenvalues))))


def outliers(num, low, high):
    return np.geomspace(low, high, num) * np.exp(np.random.default_rng(0).normal(0, 0.05, num))


BULK = 1e-3 * np.random.default_rng(1).standard_normal(DIM - NUM_OUTLIERS)
MATRICES = {
    "outliers above a normal bulk": np.concatenate((BULK, outliers(NUM_OUTLIERS, 0.01, 30))),
    "outliers on both sides": np.concatenate((BULK, outliers(30, 0.01, 30), -outliers(10, 0.01, 1))),
    "a power law without a gap": 1e-5 * (1 - np.random.default_rng(3).random(DIM)) ** (-1 / 0.7),
    "a nearly double top eigenvalue": np.concatenate((BULK, outliers(38, 0.01, 30), [50.0, 50.0001])),
    "an atom of 300 equal eigenvalues": np.concatenate((BULK[:-260], np.full(300, 0.02), outliers(20, 0.06, 50))),
}


@pytest.mark.parametrize("name", MATRICES)
def test_the_schedule_hardly_depends_on_the_probe(name):
    """With 150 products, the curve is within 6 % of the exact one for every seed; without counting it is far off."""
    eigenvalues = MATRICES[name]
    curve = exact(eigenvalues)
    for seed in range(3):
        found = sharpen(*probe(eigenvalues, 150, seed), WEIGHT_DECAY, dim=len(eigenvalues))
        assert np.abs(log_curve(found) - curve).max() < 0.06


def test_without_counting_the_end_of_the_schedule_depends_on_the_probe():
    eigenvalues = MATRICES["outliers above a normal bulk"]
    curve = exact(eigenvalues)
    errors = [
        np.abs(log_curve(sharpen(*probe(eigenvalues, 150, seed), WEIGHT_DECAY)) - curve).max() for seed in range(4)
    ]
    assert np.median(errors) > 0.3


def test_counted_eigenvalues_are_eigenvalues_with_weight_one():
    eigenvalues = MATRICES["outliers on both sides"]
    found = sharpen_and_count(*probe(eigenvalues, 150, 0), WEIGHT_DECAY, dim=DIM)
    assert len(found.counted) > 40
    assert np.abs(found.counted[:, None] - eigenvalues).min(axis=1).max() < 1e-6
    places = np.isin(found.spectrum.eigenvalues, found.counted)
    assert_allclose(found.spectrum.weights[places], 1 / DIM, rtol=1e-12)
    assert found.spectrum.weights.sum() == pytest.approx(1)
    for outlier in (30.0, -1.0):
        assert np.abs(found.counted - outlier).min() < 0.5 * abs(outlier)


def test_an_unresolved_cluster_keeps_its_probe_weight():
    eigenvalues = MATRICES["an atom of 300 equal eigenvalues"]
    found = sharpen_and_count(*probe(eigenvalues, 150, 0), WEIGHT_DECAY, dim=len(eigenvalues))
    assert np.abs(found.counted - 0.02).min(initial=1.0) > 1e-6
    near = np.abs(found.spectrum.eigenvalues - 0.02) < 1e-4
    assert found.spectrum.weights[near].sum() == pytest.approx(300 / len(eigenvalues), rel=0.25)


def test_copies_of_an_eigenvalue_are_not_counted():
    """Rounding lets Lanczos find a multiple eigenvalue several times; it keeps the weight that the probe gives it."""
    distinct = outliers(20, 0.01, 30)
    eigenvalues = np.concatenate((BULK[:-20], np.repeat(distinct, 3)))
    found = sharpen_and_count(*probe(eigenvalues, 150, 0), WEIGHT_DECAY, dim=DIM)
    top = distinct[-5:]
    assert np.abs(found.counted[:, None] - top).min() > 1e-3
    near = np.abs(found.spectrum.eigenvalues[:, None] - top).min(axis=1) < 1e-6
    assert found.spectrum.weights[near].sum() * DIM == pytest.approx(15, rel=0.8)


def test_a_low_rank_matrix_counts_its_rank():
    """Lanczos ends after 11 steps; the null space keeps the rest of the mass."""
    eigenvalues = np.concatenate((np.zeros(990), np.arange(1.0, 11.0)))
    distinct, weights = np.arange(11.0), np.random.default_rng(0).chisquare(1, 11)
    weights[0] = 990
    found = sharpen_and_count(*lanczos_of_spectrum(distinct, weights, 11), 1e-3, dim=len(eigenvalues))
    assert_allclose(found.counted, distinct[1:], atol=1e-9)
    assert_allclose(found.spectrum.weights, np.array([990, *np.ones(10)]) / 1000, atol=1e-9)


def test_residuals_gaps_and_weights_decide():
    nodes, weights = np.array([0.0, 1.0, 1.001, 5.0, 9.0]), np.array([0.95, 0.01, 0.01, 0.02, 0.01])
    residuals = np.array([0.5, 1e-4, 1e-4, 1e-4, 1.0])
    assert counted_nodes(nodes, weights, residuals, 100).tolist() == [False, False, False, True, False]
    assert not counted_nodes(nodes, np.full(5, 0.2), residuals, int(MAX_WEIGHT / 0.2) + 1).any()


def test_no_node_is_counted_if_multiple_eigenvalues_must_hide_among_them():
    nodes, weights = np.array([1.0, 2.0, 3.0]), np.array([0.2, 0.5, 0.3])
    assert not counted_nodes(nodes, weights, np.zeros(3), 4).any()
    assert counted_nodes(nodes, weights, np.zeros(3), 3).all()


def test_recounting_keeps_the_total():
    weights, counted = np.array([0.7, 0.1, 0.2]), np.array([False, False, True])
    assert_allclose(recounted(weights, counted, 10), [0.9 * 0.7 / 0.8, 0.9 * 0.1 / 0.8, 0.1])
    assert_allclose(recounted(np.array([0.3, 0.7]), np.array([True, True]), 2), [0.5, 0.5])


@pytest.mark.parametrize("nodes", [[1.0], [1.0, 2.0], [1.0, 2.0, 4.0, 7.0]])
@pytest.mark.parametrize("eigenvalue", [-3.0, 1.0, 1.4, 1.6, 3.1, 6.9, 7.0, 99.0])
def test_the_nearest_node_is_found_beyond_both_ends_too(nodes, eigenvalue):
    found = nearest_nodes(np.array(nodes), np.array([eigenvalue]))
    assert np.flatnonzero(found).tolist() == [int(np.abs(np.array(nodes) - eigenvalue).argmin())]
