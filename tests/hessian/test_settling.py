import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from tests.hessian.matrices import MatrixOperator, hessian_like, matrix_operator, start

import eigencurve as ec
from eigencurve.hessian import estimate_spectrum, settling
from eigencurve.hessian.lanczos import lanczos
from eigencurve.hessian.settling import Settling, log_curve


@pytest.fixture(scope="module")
def run():
    return lanczos(matrix_operator(), start(3000, torch.float32), 80)


@pytest.fixture
def sharpened(monkeypatch):
    """Length of every tridiagonal that is sharpened."""
    lengths, original = [], settling.sharpen_and_count

    def counting(alphas, betas, *scale, **options):
        lengths.append(len(alphas))
        return original(alphas, betas, *scale, **options)

    monkeypatch.setattr(settling, "sharpen_and_count", counting)
    return lengths


def test_step_counts_grow_by_a_twelfth_up_to_the_last():
    counts = Settling(5e-4, 100, torch.float32).step_counts(250)
    assert (counts[0], counts[-1] <= 250) == (32, True)
    assert all(1 < after / before <= 12 / 11 for before, after in pairwise(counts))
    assert Settling(5e-4, 100, torch.float32).step_counts(31) == []


def test_moved_is_the_largest_distance_to_the_curves_of_the_last_quarter(run):
    found = Settling(5e-4, 1000, torch.float32)
    earlier = [j for j in found.step_counts(80) if 60 <= j < 80]
    curves = [found.curve(run.alphas[:j], run.betas[:j]) for j in (*earlier, 80)]
    wanted = max(float(np.abs(curve - curves[-1]).max()) for curve in curves[:-1])
    assert found.moved(run.alphas, run.betas) == wanted > 0


def test_nothing_is_settled_before_there_is_a_curve_to_compare_with(run):
    assert Settling(5e-4, 1000, torch.float32).moved(run.alphas[:33], run.betas[:33]) == math.inf


def test_every_block_is_sharpened_once(run, sharpened):
    found = Settling(5e-4, 1000, torch.float32)
    for k in (*found.step_counts(80), 80):
        found.moved(run.alphas[:k], run.betas[:k])
    found.sharpened(run.alphas, run.betas)
    assert sorted(sharpened) == sorted(set(sharpened))


@pytest.mark.parametrize("settings", [{"num_products": 150, "settle": 0.2}, {"num_products": 60, "settle": None}])
def test_an_estimate_sharpens_its_final_block_once(sharpened, settings):
    estimate = estimate_spectrum(matrix_operator(), **settings)
    assert sharpened.count(estimate.num_products) == 1


def test_a_spectrum_of_one_eigenvalue_has_a_constant_curve():
    assert not log_curve(ec.Spectrum([2.0], [1.0]), 1e-3, 50).any()


@pytest.mark.parametrize("num_vectors", [None, 102, 64])
def test_the_curve_hardly_depends_on_the_probe_whatever_the_memory(num_vectors):
    """With 64 vectors or more, which hold the 40 outliers; without counting, these errors are 0.3 to 1.5."""
    eigenvalues = hessian_like(4000, 40)
    exact = log_curve(ec.Spectrum(eigenvalues, np.ones(4000)), 5e-4, 39_100)
    budget = None if num_vectors is None else num_vectors * 4 * 4000
    for seed in range(3):
        operator = MatrixOperator(eigenvalues, torch.float32)
        found = estimate_spectrum(operator, 150, settle=None, seed=seed, memory_budget=budget, progress=False)
        assert np.abs(log_curve(found.spectrum, 5e-4, 39_100) - exact).max() < 0.15
        assert len(found.counted) > 40
        assert np.abs(found.counted[:, None] - eigenvalues).min(axis=1).max() < 1e-4


def test_several_probes_count_each_eigenvalue_once():
    eigenvalues = hessian_like(4000, 40)
    found = estimate_spectrum(MatrixOperator(eigenvalues), 100, settle=None, num_probes=3, progress=False)
    claimed = np.abs(found.counted[:, None] - eigenvalues).argmin(axis=1)
    assert len(set(claimed.tolist())) == len(claimed) > 40
    above = found.spectrum.eigenvalues > 9
    assert found.spectrum.weights[above].sum() * 4000 == pytest.approx(40, abs=1e-6)


def test_long_schedules_are_compared_at_the_steps_where_they_differ_most():
    """The largest distance over 40,000 of a million steps is that over all of them, to a thousandth."""
    spectra = [ec.PowerLaw(alpha, 5e-4, 50.0).spectrum(num=200) for alpha in (1.3, 1.5)]
    few = [log_curve(spectrum, 1e-9, 10**6) for spectrum in spectra]
    every = [np.log(ec.eigencurve(ec.spectrum.prepare(s, weight_decay=1e-9), 10**6, lr=1.0).values()) for s in spectra]
    assert len(few[0]) <= 40_000
    assert np.abs(few[0] - few[1]).max() == pytest.approx(np.abs(every[0] - every[1]).max(), rel=1e-3)


def test_a_spectrum_without_positive_curvature_is_measured_as_well():
    """A few Lanczos steps can be all negative although the spectrum is not; ``prepare`` refuses the finished one."""
    curves = [log_curve(ec.Spectrum(sign * np.array([1.0, 30.0]), [9, 1]), 5e-4, 1000) for sign in (1, -1)]
    assert_array_equal(*curves)
