import numpy as np
import pytest
from tests.hessian.matrices import EIGENVALUES, matrix_operator
from tests.hessian.models import problem

import eigencurve as ec
from eigencurve.hessian import estimate_spectrum
from eigencurve.hessian.estimate import schedule_of
from eigencurve.hessian.operator import HessianOperator
from eigencurve.spectrum.measurement import MeasurementRecord


def exact_shares(octaves):
    heights = np.abs(EIGENVALUES) + 5e-4
    edges = np.append(octaves.lower, np.inf)
    return np.array([np.mean((heights >= a) & (heights < 2 * a)) for a in edges[:-1]])


def test_a_settled_run_stops_and_says_why():
    estimate = estimate_spectrum(matrix_operator(), num_products=150, settle=0.2)
    assert (estimate.reason, estimate.schedule_change < 0.2, estimate.num_products < 150) == ("settled", True, True)
    longer = estimate_spectrum(matrix_operator(), num_products=60, settle=1e-9)
    assert (longer.reason, longer.num_products) == ("num_steps", 60)
    assert np.array_equal(longer.alphas[0][:40], estimate.alphas[0][:40])


def test_small_models_are_found_exactly():
    model, loss_fn, batch = problem("mlp")
    estimate = estimate_spectrum(HessianOperator(model, loss_fn, batch), num_products=250)
    assert (estimate.reason, estimate.spectrum.dim) == ("exact", 26)
    assert estimate.num_products <= 26


def test_the_same_seed_gives_the_same_numbers():
    first, second, other = (estimate_spectrum(matrix_operator(), 40, settle=None, seed=seed) for seed in (3, 3, 4))
    assert first.spectrum == second.spectrum
    assert first.spectrum != other.spectrum


def test_error_bars_cover_the_exact_shares():
    """Nearly all octaves with some weight are within three standard errors, and the errors are small."""
    inside = []
    for seed in range(3):
        octaves = estimate_spectrum(matrix_operator(), 120, num_probes=2, settle=None, seed=seed).octaves
        expected = exact_shares(octaves)
        weighty = expected > 0.005
        inside += (np.abs(octaves.share - expected) <= 3 * octaves.error)[weighty].tolist()
        assert np.median(octaves.error[weighty]) < 0.03
    assert np.mean(inside) > 0.8


def test_several_probes_are_averaged():
    estimate = estimate_spectrum(matrix_operator(), 30, num_probes=3, settle=None)
    assert (len(estimate.alphas), estimate.num_products, len(estimate.nodes)) == (3, 90, 90)
    assert estimate.weights.sum() == pytest.approx(1)


def test_the_record_of_an_estimate_is_what_a_file_keeps(tmp_path):
    estimate = estimate_spectrum(matrix_operator(), 20, settle=None, weight_decay=1.0)
    record = estimate.measurement("a command")
    assert type(record) is MeasurementRecord
    assert (record.made_by, estimate.made_by) == ("a command", "")
    assert str(record) == str(estimate)
    assert (record.num_products, record.weight_decay) == (20, 1.0)
    ec.save_spectrum(estimate.spectrum, tmp_path / "s.npz", record)
    with pytest.warns(UserWarning, match=r"has not settled \(20 products, too few to tell\)"):
        assert ec.load_spectrum(tmp_path / "s.npz") == estimate.spectrum


def test_the_schedule_of_an_estimate_has_its_weight_decay_and_steps():
    estimate = estimate_spectrum(matrix_operator(), 40, settle=None, weight_decay=1e-2, total_steps=500)
    prepared = ec.spectrum.prepare(estimate.spectrum, 1e-2)
    assert schedule_of(estimate, 0.1) == ec.eigencurve(prepared, 500, 0.1)
    assert schedule_of(estimate, 0.1, 1e-4, beta=4.0) == ec.eigencurve(prepared, 500, 0.1, 1e-4, beta=4.0)


def test_the_largest_seeds_are_seeds_too():
    matrix = np.diag(np.geomspace(1e-3, 10, 40))
    found = [estimate_spectrum(matrix, 8, seed=seed, settle=None, progress=False) for seed in (0, 2**50, 2**63 - 1)]
    assert len({estimate.alphas[0][0] for estimate in found}) == 3
    with pytest.raises(ValueError, match="estimate_spectrum: 'seed' must be <= 9223372036854775807"):
        estimate_spectrum(matrix, 8, seed=2**63)
    with pytest.raises(ValueError, match="estimate_spectrum: 'total_steps' must be <= 9007199254740992"):
        estimate_spectrum(matrix, 8, total_steps=10**30)
