import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.paper.ridge.problems import problem

import eigencurve as ec
from eigencurve.runs.store import Store
from paper.data.rows import read_libsvm
from paper.engine.request import Workers
from paper.ridge.experiment import RidgeExperiment, RidgeProblem, make_schedule
from paper.ridge.theory import LARGEST_RATES, best_grid, check_sampling, noisy_quadratic


def test_the_theory_sees_the_noise_at_the_optimum():
    p = problem(num_rows=500)
    q = noisy_quadratic(p)
    matrix, labels, w = p.rows.dense(), p.rows.labels, p.optimum
    gradients = np.array([2 * (x @ w - y) * x + 2 * p.alpha * w for x, y in zip(matrix, labels, strict=True)])
    assert_allclose(gradients.mean(axis=0), 0, atol=1e-13)
    _, vectors = np.linalg.eigh(p.hessian)
    assert_allclose(
        q.noise * q.spectrum.eigenvalues, np.diag(vectors.T @ np.cov(gradients.T, bias=True) @ vectors), rtol=1e-9
    )


def test_the_best_schedule_is_a_run_of_its_own_in_the_store(tmp_path):
    ridge = RidgeExperiment(problem(), "synthetic")
    store, here = Store(tmp_path / "s.sqlite"), Workers(backend="sequential", count=1)
    grid = best_grid(ridge, 2, store, here, progress=False)
    assert grid == best_grid(ridge, 2, store, here, progress=False)
    assert len(store.rows(f"{ridge.name}/best")) == len(grid) == len(LARGEST_RATES)
    q = noisy_quadratic(ridge.problem)
    for settings_ in grid:
        f = make_schedule(settings_, ridge.problem)
        assert f.values().max() <= settings_["lr"] * (1 + 1e-12)
        assert q.expected_loss(f) <= q.expected_loss(ec.cosine(f.total_steps, settings_["lr"])) * (1 + 1e-9)
    assert best_grid(ridge, 10_000, store, here, progress=False) == []


def test_independent_rows_follow_the_theory_and_reshuffled_ones_beat_its_certificate(data_path, tmp_path):
    """At 25 epochs of a4a; the recursion leaves out that noise grows with the distance from the optimum."""
    ridge = RidgeExperiment(RidgeProblem(read_libsvm(data_path("a4a"), num_columns=123)), "a4a")
    check = check_sampling(ridge, 25, range(3), Store(tmp_path / "s.sqlite"), Workers(backend="sequential", count=1))
    for _, independent, expected in check.gaps.values():
        assert independent == pytest.approx(expected, rel=0.15)
        assert independent > check.certificate
    assert min(reshuffled for reshuffled, _, _ in check.gaps.values()) < check.certificate / 3
    assert check_sampling(ridge, 250, range(3), Store(tmp_path / "s.sqlite"), None) is None
