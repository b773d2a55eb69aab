import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference.problems import problems

import eigencurve as ec
from eigencurve.theory.block_search import at_best_scale, search_blocks
from eigencurve.theory.tuning import classic_schedules, tuned

LAW = ec.PowerLaw(1.5, 5e-4, 180.0).spectrum(200)


@pytest.mark.parametrize("noise", [1.0, 1e4])
@pytest.mark.parametrize("T", [1, 7, 300, 3_910])
def test_is_as_good_as_the_search_step_by_step(T, noise):
    """Two ways to the same minimum: blocks of constant rates, and every single rate."""
    q = ec.NoisyQuadratic(LAW, noise, 1.0)
    found, reference = search_blocks(LAW, q.nodes, T, 2 / LAW.L), q.search_best(T, 2 / LAW.L)
    assert_allclose(q.expected_loss(found.schedule), reference.loss, rtol=1e-4)
    assert found.lower_bound == reference.lower_bound


@settings(max_examples=15)
@given(q=problems(), T=st.integers(1, 2000), cap=st.floats(0.1, 2))
def test_keeps_to_its_limits(q, T, cap):
    max_lr = cap / q.spectrum.L
    found = search_blocks(q.spectrum, q.nodes, T, max_lr)
    values = found.schedule.values()
    assert len(values) == T
    assert 0 <= values.min() <= values.max() <= max_lr
    loss = q.expected_loss(found.schedule)
    assert_allclose(found.loss, loss, rtol=0.01, atol=1e-290)
    assert q.lower_bound(T, max_lr) <= loss * (1 + 1e-11)
    for schedule in classic_schedules(q.spectrum, q.nodes, T, max_lr).values():
        # the blocks' own error, and that of the scale found with them
        assert loss <= q.expected_loss(tuned(q.nodes, schedule, max_lr)) * 1.01 + 1e-290


@pytest.mark.parametrize("noise", [1.0, 1e4])
def test_the_best_scale_is_that_of_the_search_step_by_step(noise):
    q = ec.NoisyQuadratic(LAW, noise, 1.0)
    for f in (ec.eigencurve(LAW, 5000, 0.1), ec.cosine(5000, 0.1, 0.001), ec.step_decay(5000, 0.1)):
        mine, exact = at_best_scale(q.nodes, f, 2 / LAW.L), tuned(q.nodes, f, 2 / LAW.L)
        assert_allclose(q.expected_loss(mine), q.expected_loss(exact), rtol=1e-3)
        assert mine.values().max() <= 2 / LAW.L


def test_a_million_steps_on_the_published_spectrum(data_path):
    """Not below the certificate, not above what the tuned classics reach, by the exact recursion on few nodes."""
    p = ec.prepare(ec.load_spectrum(data_path("spectra/resnet-18_cifar10.txt")), weight_decay=5e-4)
    q = ec.NoisyQuadratic(p, 1e4, 1.0)
    found = search_blocks(p, q.nodes, 10**6, 2 / p.L)
    assert found.status == "optimised"
    assert found.lower_bound < found.loss
    few = ec.NoisyQuadratic(ec.Spectrum(p.eigenvalues[::25], p.weights[::25]), 1e4, 1.0)
    eigencurve = at_best_scale(few.nodes, ec.eigencurve(p, 10**6, 1.0), 2 / p.L)
    assert few.expected_loss(found.schedule) < few.expected_loss(eigencurve)


def test_the_best_schedule_of_39_100_steps(data_path):
    """0.23294 is what the search step by step found: results/theory/best.md."""
    p = ec.prepare(ec.load_spectrum(data_path("spectra/resnet-18_cifar10.txt")), weight_decay=5e-4)
    q = ec.NoisyQuadratic(p, 1e4, 1.0)
    found = search_blocks(p, q.nodes, 39_100, 2 / p.L)
    assert_allclose(q.expected_loss(found.schedule), 0.23294, rtol=1e-4)
    assert_allclose(found.loss, 0.23294, rtol=1e-3)
    assert np.all(found.schedule.values() >= 0)
