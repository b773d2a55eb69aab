import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import eigencurve as ec
from eigencurve.theory.nodes import Nodes, compress
from eigencurve.theory.recursion import final_loss

LAWS = {alpha: ec.PowerLaw(alpha, 1e-3, 10.0).spectrum(3000) for alpha in (0.5, 1.0, 1.5)}


@pytest.mark.parametrize("alpha", LAWS)
@pytest.mark.parametrize("top", [1.0, 1.9, 1.99, 2.0])
def test_a_few_nodes_give_the_loss_of_many(alpha, top):
    """Up to 2/L, the largest stable rate, at which the variance of the largest eigenvalue never settles."""
    spectrum = LAWS[alpha]
    nodes = ec.NoisyQuadratic(spectrum, 1e4, 1.0).nodes
    few = compress(nodes, num_cells=64)
    assert len(few) <= 128
    for f in (ec.constant(500, top / spectrum.L), ec.linear(500, top / spectrum.L)):
        assert_allclose(final_loss(few, f.values()), final_loss(nodes, f.values()), rtol=1e-4)


def test_keeps_the_moments():
    nodes = ec.NoisyQuadratic(LAWS[1.0], 2.0, 3.0).nodes
    few = compress(nodes, num_cells=20)
    for power in range(4):
        assert_allclose(few.weights @ few.lam**power, nodes.weights @ nodes.lam**power, rtol=1e-12)
    assert_allclose(few.noise, 2.0)
    assert_allclose(few.error, 3.0)
    assert (np.diff(few.lam) > 0).all()
    assert compress(ec.NoisyQuadratic(LAWS[1.0], noise_power=0.25).nodes).noise_power == 0.25


def test_three_eigenvalues_of_a_cell_become_two():
    lam = np.array([1.0, 1.001, 1.003, 3.99, 4.0])
    few = compress(Nodes(lam, np.full(5, 0.2), np.ones(5), np.ones(5), 0.0), num_cells=2)
    assert len(few) == 4
    assert_allclose(few.lam[2:], [3.99, 4.0])


def test_few_or_equal_eigenvalues():
    nodes = ec.NoisyQuadratic(LAWS[1.0]).nodes
    assert compress(nodes, num_cells=1500) is nodes
    equal = Nodes(np.full(300, 2.0), np.full(300, 1 / 300), np.ones(300), np.ones(300), 0.0)
    one = compress(equal, num_cells=64)
    assert_allclose(one.weights @ one.lam, 2.0)


def test_compression_keeps_the_loss_of_a_published_spectrum(data_path):
    p = ec.spectrum.prepare(ec.load_spectrum(data_path("spectra/resnet-18_cifar10.txt")), weight_decay=5e-4)
    q = ec.NoisyQuadratic(p, 100.0, 1.0)
    few = compress(q.nodes)
    assert len(few) <= 128
    assert_allclose(few.weights.sum(), 1.0, rtol=1e-12)
    for k in (1, 2, 3):
        assert_allclose(few.weights @ few.lam**k, p.weights @ p.eigenvalues**k, rtol=1e-9)
    small = ec.NoisyQuadratic(ec.Spectrum(few.lam, few.weights), 100.0, 1.0)
    for f in (ec.cosine(3910, 1 / p.L), ec.eigencurve(p, 3910, 1 / p.L), ec.linear(3910, 0.1 / p.L)):
        assert_allclose(small.expected_loss(f), q.expected_loss(f), rtol=1e-6)


@given(heights=st.lists(st.floats(0, 1), min_size=200, max_size=300))
def test_compression_keeps_three_moments(heights):
    s = ec.Spectrum(1e3 ** np.array(heights), np.ones(len(heights)))
    few = compress(ec.NoisyQuadratic(s, 1.0, 1.0).nodes, num_cells=10)
    assert len(few) <= 20
    assert (few.weights > 0).all()
    for k in (0, 1, 2, 3):
        assert_allclose(few.weights @ few.lam**k, s.weights @ s.eigenvalues**k, rtol=1e-8)
