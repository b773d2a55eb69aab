import math
from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from tests.hessian.matrices import MatrixOperator, hessian_like, matrix_operator, random_spectrum, start

import eigencurve as ec
from eigencurve.hessian import accuracy, estimate_spectrum
from eigencurve.hessian.accuracy import Settling, distance_between_probes, log_curve, octave_shares, probe_error
from eigencurve.hessian.lanczos import lanczos
from eigencurve.spectrum.groups import octave_index
from eigencurve.spectrum.quadrature import Sharpened
from eigencurve.spectrum.spectrum import Spectrum


@pytest.fixture(scope="module")
def run():
    return lanczos(matrix_operator(), start(3000, torch.float32), 80)


@pytest.fixture
def sharpened(monkeypatch):
    """Length of every tridiagonal that is sharpened."""
    lengths, original = [], accuracy.sharpen_and_count

    def counting(alphas, betas, *scale, **options):
        lengths.append(len(alphas))
        return original(alphas, betas, *scale, **options)

    monkeypatch.setattr(accuracy, "sharpen_and_count", counting)
    return lengths


def test_step_counts_grow_by_a_twelfth_up_to_the_last():
    counts = Settling(5e-4, 100, torch.float32).step_counts(250)
    assert (counts[0], counts[-1] <= 250) == (32, True)
    assert all(1 < after / before <= 12 / 11 for before, after in pairwise(counts))
    assert Settling(5e-4, 100, torch.float32).step_counts(31) == []


def test_the_schedule_change_is_the_largest_distance_to_the_curves_of_the_last_quarter(run):
    settling = Settling(5e-4, 1000, torch.float32)
    earlier = [j for j in settling.step_counts(80) if 60 <= j < 80]
    curves = [settling.curve(run.alphas[:j], run.betas[:j]) for j in (*earlier, 80)]
    wanted = max(float(np.abs(curve - curves[-1]).max()) for curve in curves[:-1])
    assert settling.schedule_change(run.alphas, run.betas) == wanted > 0
    assert settling.schedule_change(run.alphas[:33], run.betas[:33]) == math.inf  # nothing to compare with yet


def test_every_block_is_sharpened_once(run, sharpened):
    settling = Settling(5e-4, 1000, torch.float32)
    for k in (*settling.step_counts(80), 80):
        settling.schedule_change(run.alphas[:k], run.betas[:k])
    settling.sharpened(run.alphas, run.betas)
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
        estimate = estimate_spectrum(operator, 150, settle=None, seed=seed, memory_budget=budget, progress=False)
        assert np.abs(log_curve(estimate.spectrum, 5e-4, 39_100) - exact).max() < 0.15
        assert len(estimate.counted) > 40
        assert np.abs(estimate.counted[:, None] - eigenvalues).min(axis=1).max() < 1e-4


def test_several_probes_count_each_eigenvalue_once():
    eigenvalues = hessian_like(4000, 40)
    estimate = estimate_spectrum(MatrixOperator(eigenvalues), 100, settle=None, num_probes=3, progress=False)
    claimed = np.abs(estimate.counted[:, None] - eigenvalues).argmin(axis=1)
    assert len(set(claimed.tolist())) == len(claimed) > 40
    above = estimate.spectrum.eigenvalues > 9
    assert estimate.spectrum.weights[above].sum() * 4000 == pytest.approx(40, abs=1e-6)


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


@pytest.mark.parametrize(("dim", "num_steps"), [(4000, 60), (4000, 120), (1000, 40)])
def test_one_probe_predicts_how_far_others_are(dim, num_steps):
    """The prediction comes from a single probe; it is within a factor of three of the median distance of pairs."""
    operator = MatrixOperator(hessian_like(dim), torch.float64)
    estimates = [estimate_spectrum(operator, num_steps, settle=None, seed=seed, progress=False) for seed in range(5)]
    curves = [log_curve(estimate.spectrum, 5e-4, 39_100) for estimate in estimates]
    actual = np.median([np.abs(first - second).max() for first, second in combinations(curves, 2)])
    for estimate in estimates:
        assert actual / 3 < estimate.error_between_probes < 3 * actual


def test_more_probes_have_a_smaller_error():
    operator = MatrixOperator(hessian_like(1000), torch.float64)
    one, four = (
        estimate_spectrum(operator, 40, settle=None, num_probes=num, progress=False).error_between_probes
        for num in (1, 4)
    )
    assert 0.3 < four / one < 0.75  # half, up to the noise of 15 pairs


def test_a_spectrum_that_is_counted_completely_has_none():
    spectrum = Spectrum([1.0, 2.0, 4.0], np.ones(3))
    assert probe_error([Sharpened(spectrum, spectrum.eigenvalues)], 1e-3, 100, 3) == 0


def test_several_probes_also_measure_how_far_they_are_from_each_other():
    operator = MatrixOperator(hessian_like(1000), torch.float64)
    estimate = estimate_spectrum(operator, 40, settle=None, num_probes=3, progress=False)
    singles = [
        Settling(5e-4, 39_100, torch.float64, 1000).curve(*run)
        for run in zip(estimate.alphas, estimate.betas, strict=True)
    ]
    wanted = max(np.abs(first - second).max() for first, second in combinations(singles, 2))
    assert estimate.distance_between_probes == pytest.approx(wanted, rel=1e-12)
    # The mean of three probes is closer to that of another three.
    assert estimate.error_between_probes < estimate.distance_between_probes
    assert f"across probes {estimate.error_between_probes:.2%}" in repr(estimate)
    assert math.isnan(distance_between_probes([], 5e-4, 100))


def sharpened_as(spectrum, counted=()):
    return Sharpened(spectrum, np.array(counted, dtype=np.float64))


def test_a_single_probe_has_the_variance_of_the_beta_distribution():
    spectrum = ec.Spectrum([1.0, 3.0], [1, 3])
    octaves = octave_shares(spectrum, [sharpened_as(spectrum)], [], weight_decay=1e-9, dim=100)
    np.testing.assert_allclose(octaves.error, np.sqrt(2 * 0.25 * 0.75 / 102))


def test_probes_that_scatter_more_than_theory_widen_the_error():
    mean, first, second = (ec.Spectrum([1.0, 3.0], [1 - share, share]) for share in (0.5, 0.3, 0.7))
    octaves = octave_shares(mean, [sharpened_as(first), sharpened_as(second)], [], weight_decay=1e-9, dim=10**6)
    np.testing.assert_allclose(octaves.share, [0.5, 0.5])
    np.testing.assert_allclose(octaves.error, np.std([0.3, 0.7], ddof=1) / np.sqrt(2))


def test_half_the_change_over_the_last_steps_is_added():
    spectrum, before = ec.Spectrum([1.0, 3.0], [1, 3]), ec.Spectrum([1.0, 3.0], [2, 2])
    alone = octave_shares(spectrum, [sharpened_as(spectrum)], [], weight_decay=1e-9, dim=100)
    both = octave_shares(spectrum, [sharpened_as(spectrum)], [before], weight_decay=1e-9, dim=100)
    np.testing.assert_allclose(both.error**2, alone.error**2 + (0.25 / 2) ** 2)


def test_shares_sum_to_one_and_leave_empty_octaves_out():
    spectrum = ec.Spectrum([-1.0, 0.0, 5.0, 40.0], [1, 5, 3, 1])
    octaves = octave_shares(spectrum, [sharpened_as(spectrum)], [], weight_decay=1e-3, dim=100)
    assert octaves.share.sum() == pytest.approx(1)
    assert octaves.index.tolist() == [0, 9, 12, 15]
    np.testing.assert_allclose(octaves.lower, 1e-3 * 2.0**octaves.index)


def test_counted_eigenvalues_have_no_sampling_error():
    spectrum = ec.Spectrum([1.0, 3.0, 40.0, 50.0], [0.48, 0.48, 0.02, 0.02])
    octaves = octave_shares(spectrum, [sharpened_as(spectrum, [40.0, 50.0])], [], weight_decay=1e-9, dim=50)
    assert octaves.error[-1] == 0
    rest = 0.96**2 * 2 * 0.5 * 0.5 / (48 + 2)
    np.testing.assert_allclose(octaves.error[:-1], np.sqrt(rest))


@pytest.mark.slow
def test_an_octave_with_both_kinds_has_the_error_of_the_rest():
    spectrum = ec.Spectrum([1.0, 3.0, 3.5], [0.5, 0.4, 0.1])
    octaves = octave_shares(spectrum, [sharpened_as(spectrum, [3.5])], [], weight_decay=1e-9, dim=10)
    np.testing.assert_allclose(octaves.error, np.sqrt(0.9**2 * 2 * (5 / 9) * (4 / 9) / 11))


def test_standard_errors_cover_the_truth():
    """200 random matrices: a normal error is within one standard error in 68 % of the cases.

    If only a few eigenvalues of an octave are not counted, the error is a skewed χ² variable, which is within one
    standard deviation in up to 88 % of the cases, so the fraction is higher. Octaves without an error must be exact.
    """
    scores, exact = [], []
    for seed in range(200):
        eigenvalues = random_spectrum(np.random.default_rng(seed))
        operator = MatrixOperator(eigenvalues, torch.float64)
        found = estimate_spectrum(operator, 100, settle=None, seed=seed, progress=False).octaves
        lowest = found.lower[0] / 2.0 ** found.index[0]
        places = octave_index(np.maximum(np.abs(eigenvalues) + 5e-4, lowest), lowest)
        shares = np.bincount(np.minimum(places, found.index[-1]), minlength=found.index[-1] + 1) / len(eigenvalues)
        errors, uncertain = found.share - shares[found.index], found.error > 0
        scores.append(np.abs(errors[uncertain]) / found.error[uncertain])
        exact.append(np.abs(errors[~uncertain]).max(initial=0.0))
    assert 0.66 < np.mean(np.concatenate(scores) <= 1) < 0.85
    assert np.mean(np.concatenate(scores) <= 2) > 0.93
    assert max(exact) < 1e-9


@pytest.mark.parametrize("count", [17, 19, 22, 29, 35])
def test_the_error_of_a_single_octave_is_zero_though_its_weights_round_above_one(count):
    weights = np.random.default_rng(count).random(count)
    spectrum = ec.Spectrum(np.linspace(1, 1.9, count), weights)
    octaves = octave_shares(spectrum, [sharpened_as(spectrum)], [], weight_decay=1e-9, dim=100)
    np.testing.assert_allclose(octaves.error, 0, atol=1e-8)
    assert octaves.share == pytest.approx([1.0])
