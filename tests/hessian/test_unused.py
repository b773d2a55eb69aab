"""Parameters that the loss does not depend on: probes leave them out, and their zeros are counted."""

import numpy as np
import pytest
import torch
from tests.hessian.matrices import Counting, MatrixOperator, hessian_like
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve.hessian import HessianOperator, estimate_noise, estimate_spectrum
from eigencurve.hessian.accuracy import probe_error
from eigencurve.spectrum.files import load_measurement
from eigencurve.spectrum.quadrature import Sharpened, gauss_quadrature, with_zeros
from eigencurve.spectrum.spectrum import Spectrum

NUM_UNUSED = 1000


def padded(num_unused=NUM_UNUSED, dim=4000):
    """A matrix like a Hessian between two blocks of zero rows."""
    half = num_unused // 2
    return np.concatenate((np.zeros(half), hessian_like(dim), np.zeros(num_unused - half)))


def estimate(matrix, num_steps=60, **settings):
    return estimate_spectrum(MatrixOperator(matrix), num_steps, settle=None, progress=False, **settings)


def test_zero_rows_are_counted_and_left_out_of_the_probe():
    operator = MatrixOperator(padded())
    found = estimate_spectrum(operator, 60, settle=None, progress=False)
    assert (found.num_unused, found.num_products, operator.num_products) == (NUM_UNUSED, 60, 61)
    nodes, weights = gauss_quadrature(found.alphas[0], found.betas[0])
    assert weights @ nodes == pytest.approx(hessian_like(4000).mean(), rel=0.2)  # of the 4,000, not of all 5,000
    assert found.spectrum.dim == 5000
    assert found.spectrum.weights[found.spectrum.eigenvalues == 0].sum() >= NUM_UNUSED / 5000


def test_nodes_and_weights_are_those_of_all_parameters():
    found = estimate(padded(), num_probes=2)
    used = np.concatenate([gauss_quadrature(*run)[1] for run in zip(found.alphas, found.betas, strict=True)])
    np.testing.assert_allclose(found.weights[:-1], used * 0.8 / 2)
    assert (found.nodes[-1], found.weights[-1]) == (0.0, pytest.approx(0.2))
    assert found.weights.sum() == pytest.approx(1)


def test_unused_parameters_cost_no_accuracy():
    """However many zeros there are, the octaves above zero keep their relative error."""
    exact = np.sort(hessian_like(4000))
    for num_unused in (0, 1000, 40_000):
        found = estimate(padded(num_unused), num_steps=100).octaves
        heights = np.abs(exact) + 5e-4
        count = np.array([np.sum((heights >= low) & (heights < 2 * low)) for low in found.lower])
        count[0] += num_unused
        weighty = count > 200
        np.testing.assert_allclose(found.share[weighty] * (4000 + num_unused), count[weighty], rtol=0.15)


def test_known_zeros_have_no_sampling_error():
    error_of_few, error_of_many = (estimate(padded(num)).octaves.error[0] for num in (0, 40_000))
    assert error_of_many < error_of_few * 4000 / 44_000 * 1.5
    certain = with_zeros(Sharpened(Spectrum([1.0, 2.0], [0.5, 0.5], 2), np.array([1.0, 2.0])), 8)
    assert probe_error([certain], 1e-3, 100, 10) == 0


def test_adding_zeros_keeps_the_rest_of_the_measure():
    spectrum = Spectrum([0.0, 1.0, 2.0], [0.2, 0.4, 0.4], 10)
    found = with_zeros(Sharpened(spectrum, np.array([2.0])), 30)
    np.testing.assert_allclose(found.spectrum.eigenvalues, [0, 1, 2])
    np.testing.assert_allclose(found.spectrum.weights * 40, [32, 4, 4])
    assert (found.spectrum.dim, found.num_zeros) == (40, 30)


def test_an_interrupted_run_resumes_with_the_same_numbers(tmp_path):
    whole = estimate(padded(), num_probes=2)
    for steps, probes in ((20, 1), (60, 1), (60, 2)):
        resumed = estimate(padded(), steps, num_probes=probes, checkpoint=tmp_path / "run.npz")
    assert resumed.spectrum == whole.spectrum
    assert resumed.num_unused == NUM_UNUSED
    again = estimate(padded(), num_probes=2, checkpoint=tmp_path / "run.npz")
    assert again.spectrum == whole.spectrum


def test_a_run_that_was_stopped_in_its_first_product_starts_again(tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        estimate_spectrum(Counting(MatrixOperator(padded()), 1), 60, settle=None, progress=False, checkpoint=path)
    assert estimate(padded(), checkpoint=path).spectrum == estimate(padded()).spectrum


def test_a_matrix_of_zeros_has_one_eigenvalue():
    found = estimate(np.zeros(50))
    assert found.reason == "exact"
    assert np.array_equal(found.spectrum.eigenvalues, np.zeros(len(found.spectrum.eigenvalues)))


class Words(nn.Module):
    """A network with embeddings of words, most of which do not occur."""

    def __init__(self, num_words, width=8):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(num_words, width)
        self.layers = nn.Sequential(nn.Linear(width, 16), nn.Tanh(), nn.Linear(16, 4))

    def forward(self, words):
        return self.layers(self.embedding(words))


@pytest.fixture
def words():
    batch = torch.arange(60) % 15, torch.arange(60) % 4
    model = Words(40).double()
    return HessianOperator(model, F.cross_entropy, batch)


def test_embeddings_of_absent_words_are_unused(words, tmp_path):
    found = estimate_spectrum(words, 40, settle=None, progress=False)
    assert found.num_unused == 25 * 8
    assert "200 parameters without effect on the loss" in str(found)
    columns = [words(row) for row in torch.eye(words.dim, dtype=torch.float64)]
    exact = ec.Spectrum.from_matrix(torch.stack(columns).numpy())
    assert found.nodes @ found.weights == pytest.approx(exact.eigenvalues @ exact.weights, rel=0.3)
    ec.save_spectrum(found.spectrum, tmp_path / "words.npz", measurement=found.measurement())
    ec.save_spectrum(found.spectrum, tmp_path / "words.json", measurement=found.measurement())
    assert all(load_measurement(tmp_path / name).num_unused == 200 for name in ("words.npz", "words.json"))


def test_the_noise_of_unused_parameters_is_zero(words):
    found = estimate_spectrum(words, 40, settle=None, progress=False)
    noise = estimate_noise(words, found, batch_size=4, num_products=20)
    assert np.isfinite(noise.sigma2)
    assert noise.sigma2 > 0


@pytest.mark.parametrize("num_zeros", [1, 7, 1001])
def test_rounding_of_certain_weights_is_not_an_error(num_zeros):
    """Weights that add up to one only after rounding are still certain."""
    eigenvalues = np.linspace(0.1, 3.0, 7)
    certain = with_zeros(Sharpened(Spectrum(eigenvalues, np.ones(7), 7), eigenvalues), num_zeros)
    assert probe_error([certain] * 3, 1e-3, 100, 7 + num_zeros) == 0
