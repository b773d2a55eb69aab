import numpy as np
import pytest
from scipy.stats import spearmanr

import eigencurve as ec
from eigencurve.runs.store import Outcome
from paper.prediction.findings import (
    Finding,
    best_place,
    chosen_place,
    excess_ratios,
    mean_and_error,
    progress_ratios,
    rank_correlation,
    typical_factor,
)
from paper.prediction.scales import Pair


def finding(predicted, measured, first=10.0):
    """A finding with the given final losses, from an excess loss of ``first``."""
    pairs = [Pair("cosine", rate, ec.cosine(5, rate)) for rate in (0.1, 0.2, 0.3, 0.4)]
    curves = {"model": np.stack([np.full(4, first), np.array(predicted)], axis=1)}
    measured = np.stack([np.full(4, first), np.array(measured)], axis=1)
    return Finding("zero", first, 1.0, 0.1, pairs, np.array([0, 5]), measured, np.zeros((4, 2)), curves)


def test_ratios_and_ranks_of_final_losses():
    found = finding([2.0, 4.0, 1.0, np.inf], [1.0, 8.0, 0.5, np.inf])
    np.testing.assert_array_equal(excess_ratios(found, "model"), [2.0, 0.5, 2.0, np.nan])
    np.testing.assert_allclose(progress_ratios(found, "model"), [8 / 9, 3.0, 9 / 9.5, np.nan])
    assert typical_factor(excess_ratios(found, "model")) == pytest.approx(2.0)
    assert rank_correlation(found, "model") == pytest.approx(1.0)
    assert rank_correlation(found, "model", [0, 3]) == pytest.approx(1.0)
    assert (chosen_place(found, "model"), best_place(found)) == (2, 2)
    assert found.at_rate(0.2) == [1]


def test_a_loss_that_rises_has_no_progress():
    found = finding([2.0, 12.0, 1.0, 1.0], [12.0, 2.0, -1.0, 1.0])
    np.testing.assert_allclose(progress_ratios(found, "model"), [np.nan, np.nan, 9 / 11, 1.0])
    np.testing.assert_allclose(excess_ratios(found, "model"), [1 / 6, 6.0, np.nan, 1.0])


def test_a_wrong_order_has_a_negative_rank_and_equal_losses_have_none():
    assert rank_correlation(finding([1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]), "model") == pytest.approx(-1.0)
    assert np.isnan(rank_correlation(finding([1.0] * 4, [4.0, 3.0, 2.0, 1.0]), "model"))
    assert np.isnan(typical_factor(np.array([np.nan])))


def test_the_rank_correlation_is_that_of_scipy_with_ties_and_infinities():
    rng = np.random.default_rng(0)
    for _ in range(20):
        predicted, measured = rng.integers(0, 4, (2, 4)).astype(float)
        predicted[rng.integers(4)] = np.inf
        found = finding(predicted, measured)
        if len(set(measured)) > 1 and len(set(predicted)) > 1:
            assert rank_correlation(found, "model") == pytest.approx(spearmanr(predicted, measured).statistic)


def test_means_and_standard_errors_of_runs():
    outcomes = [Outcome({}, ((0.0, 4.0), (5.0, value))) for value in (1.0, 2.0, 3.0)]
    mean, error = mean_and_error(outcomes, 2)
    np.testing.assert_allclose(mean, [4.0, 2.0])
    np.testing.assert_allclose(error, [0.0, 1 / np.sqrt(3)])
    mean, _ = mean_and_error([*outcomes, Outcome({}, ((0.0, 4.0),), diverged=True)], 2)
    assert np.isinf(mean).all()
    assert np.isnan(mean_and_error(outcomes[:1], 2)[1]).all()
