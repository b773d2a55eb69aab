import numpy as np
import pytest
import torch
from tests.hessian.matrices import MatrixOperator, random_spectrum

import eigencurve as ec
from eigencurve.hessian import estimate_spectrum
from eigencurve.hessian.octaves import octave_shares
from eigencurve.spectrum.groups import octave_index
from eigencurve.spectrum.quadrature import Sharpened


def probe(spectrum, counted=()):
    return Sharpened(spectrum, np.array(counted, dtype=np.float64))


def test_a_single_probe_has_the_variance_of_the_beta_distribution():
    spectrum = ec.Spectrum([1.0, 3.0], [1, 3])
    octaves = octave_shares(spectrum, [probe(spectrum)], [], weight_decay=1e-9, dim=100)
    np.testing.assert_allclose(octaves.error, np.sqrt(2 * 0.25 * 0.75 / 102))


def test_probes_that_scatter_more_than_theory_widen_the_error():
    mean, first, second = (ec.Spectrum([1.0, 3.0], [1 - share, share]) for share in (0.5, 0.3, 0.7))
    octaves = octave_shares(mean, [probe(first), probe(second)], [], weight_decay=1e-9, dim=10**6)
    np.testing.assert_allclose(octaves.share, [0.5, 0.5])
    np.testing.assert_allclose(octaves.error, np.std([0.3, 0.7], ddof=1) / np.sqrt(2))


def test_half_the_change_over_the_last_steps_is_added():
    spectrum, before = ec.Spectrum([1.0, 3.0], [1, 3]), ec.Spectrum([1.0, 3.0], [2, 2])
    alone = octave_shares(spectrum, [probe(spectrum)], [], weight_decay=1e-9, dim=100)
    both = octave_shares(spectrum, [probe(spectrum)], [before], weight_decay=1e-9, dim=100)
    np.testing.assert_allclose(both.error**2, alone.error**2 + (0.25 / 2) ** 2)


def test_shares_sum_to_one_and_leave_empty_octaves_out():
    spectrum = ec.Spectrum([-1.0, 0.0, 5.0, 40.0], [1, 5, 3, 1])
    octaves = octave_shares(spectrum, [probe(spectrum)], [], weight_decay=1e-3, dim=100)
    assert octaves.share.sum() == pytest.approx(1)
    assert octaves.index.tolist() == [0, 9, 12, 15]
    np.testing.assert_allclose(octaves.lower, 1e-3 * 2.0**octaves.index)


def test_counted_eigenvalues_have_no_sampling_error():
    spectrum = ec.Spectrum([1.0, 3.0, 40.0, 50.0], [0.48, 0.48, 0.02, 0.02])
    octaves = octave_shares(spectrum, [probe(spectrum, [40.0, 50.0])], [], weight_decay=1e-9, dim=50)
    assert octaves.error[-1] == 0
    rest = 0.96**2 * 2 * 0.5 * 0.5 / (48 + 2)
    np.testing.assert_allclose(octaves.error[:-1], np.sqrt(rest))


def test_an_octave_with_both_kinds_has_the_error_of_the_rest():
    spectrum = ec.Spectrum([1.0, 3.0, 3.5], [0.5, 0.4, 0.1])
    octaves = octave_shares(spectrum, [probe(spectrum, [3.5])], [], weight_decay=1e-9, dim=10)
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
    octaves = octave_shares(spectrum, [probe(spectrum)], [], weight_decay=1e-9, dim=100)
    np.testing.assert_allclose(octaves.error, 0, atol=1e-8)
    assert octaves.share == pytest.approx([1.0])


def test_an_estimate_in_a_single_octave_is_read_back(tmp_path):
    found = estimate_spectrum(np.diag(np.linspace(0.1, 0.9, 6)), 20, weight_decay=1.0, progress=False)
    ec.save_spectrum(found.spectrum, tmp_path / "s.npz", found.measurement())
    assert ec.load_spectrum(tmp_path / "s.npz") == found.spectrum
