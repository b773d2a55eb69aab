import pytest
from tests.paper.theory.pages import check_page

import eigencurve as ec
from paper.engine.request import Request
from paper.theory import cosine


def test_the_likeness_to_cosine_is_that_of_the_nodes(tmp_path, data_path):
    """With a group for every node the curve depends on where the nodes lie; in the limit of a density it does not."""
    folder = data_path("spectra").parent
    assert "## Power laws" in check_page(cosine.make(Request(data=folder)), tmp_path)
    resnet = cosine.measure(folder)[0]
    two, every_node, limit = zip(*resnet.by_nodes.values(), strict=True)
    assert every_node[0] < 0.05 < 0.2 < every_node[-1]
    assert max(two) - min(two) < 0.001
    assert max(limit) - min(limit) < 0.001


def test_cosine_is_at_no_distance_from_itself():
    assert cosine.distance(ec.cosine(1000, 0.3)) == 0
    assert cosine.distance(ec.constant(1000, 0.3)) == pytest.approx(0.5, abs=0.001)


def test_joined_nodes_are_the_same_distribution():
    spectrum = ec.PowerLaw(1.3, 1e-3, 10.0).spectrum(2000)
    few = cosine.joined(spectrum, 8)
    assert len(few) <= 8 * 14 + 2
    assert (few.mu, few.L) == (spectrum.mu, spectrum.L)
    assert few.weights @ few.eigenvalues == pytest.approx(spectrum.weights @ spectrum.eigenvalues)
    assert ec.spectrum.group(few).share == pytest.approx(ec.spectrum.group(spectrum).share)
    assert cosine.joined(spectrum, None) is spectrum
