"""The initial error in the octaves of H, from a displacement or a gradient, against dense linear algebra."""

import copy

import numpy as np
import pytest
import torch
from tests.hessian.matrices import Counting
from tests.hessian.models import dense_hessian, problem
from tests.hessian.test_noise import DECAY, regression

import eigencurve as ec
from eigencurve.hessian import (
    HessianOperator,
    as_operator,
    estimate_noise,
    estimate_spectrum,
    estimate_start,
    start_from_gradient,
)
from eigencurve.spectrum.octaves import octave_counts


def dense_errors(hessian, displacement, grid):
    """Sum of λ_j Δ_j² in each octave."""
    eigenvalues, vectors = np.linalg.eigh(hessian)
    return grid.total(eigenvalues, (np.abs(eigenvalues) + DECAY) * (vectors.T @ displacement) ** 2)


def made(name="mlp"):
    """A model, its earlier self, its operator and its dense spectrum."""
    model, loss_fn, batch = problem(name, num_examples=20)
    start = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in start.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    hessian = dense_hessian(model, loss_fn, batch).numpy()
    return model, start, HessianOperator(model, loss_fn, batch), hessian


def flat(model):
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def test_the_errors_are_those_of_the_dense_hessian():
    model, start, operator, hessian = made()
    spectrum, displacement = ec.Spectrum.from_matrix(hessian), flat(start) - flat(model)
    found = estimate_start(operator, displacement, spectrum, weight_decay=DECAY)
    grid = octave_counts(spectrum, DECAY, operator.dim)
    expected = dense_errors(hessian, displacement.numpy(), grid)
    np.testing.assert_allclose(found.octaves.mass, expected, atol=1e-10)
    np.testing.assert_allclose(found.octaves.level, expected / grid.num_eigenvalues, atol=1e-10)
    assert found.loss == pytest.approx(expected.sum() / 2)
    assert (found.octaves.error < 1e-10).all()
    quadratic = ec.NoisyQuadratic(ec.spectrum.prepare(spectrum, DECAY), noise=0.0, initial_error=found)
    start_loss = quadratic.loss_curve(ec.constant(1, 1e-9), points=[0]).loss[0]
    assert operator.dim * start_loss == pytest.approx(found.loss)


def test_few_steps_keep_the_total_and_the_sharp_directions():
    source = np.random.default_rng(0)
    eigenvalues = np.concatenate([10.0 ** source.uniform(-4, -1, 900), [1.0, 3.0, 9.0]])
    displacement = torch.from_numpy(source.standard_normal(903))
    spectrum = ec.Spectrum(eigenvalues, np.ones(903), dim=903)
    found = estimate_start(
        as_operator(np.diag(eigenvalues)), displacement, spectrum, num_products=40, weight_decay=DECAY
    )
    grid = octave_counts(spectrum, DECAY, 903)
    expected = dense_errors(np.diag(eigenvalues), displacement.numpy(), grid)
    np.testing.assert_allclose(found.octaves.mass[-3:], expected[-3:], rtol=1e-6)
    np.testing.assert_allclose(2 * found.loss, expected.sum(), rtol=1e-3)
    # The flat octaves are resolved by the sharpened density only.
    np.testing.assert_allclose(found.octaves.mass, expected, rtol=0.6)


def test_modules_state_dicts_and_vectors_are_the_same_displacement():
    model, start, operator, hessian = made("conv")
    spectrum = ec.Spectrum.from_matrix(hessian)
    forms = [
        (start, model), (start.state_dict(), model.state_dict()), (flat(start), flat(model)), flat(start) - flat(model)
    ]  # fmt: skip
    found = [estimate_start(operator, form, spectrum, num_products=10).octaves.mass for form in forms]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-10)


def test_the_gradient_of_a_quadratic_gives_its_errors():
    model, loss_fn, batch = regression(num_examples=4000)
    with torch.no_grad():
        model.weight.fill_(3.0)
    operator = HessianOperator(model, loss_fn, batch)
    hessian = (batch[0].T @ batch[0] / 4000).numpy()
    spectrum = ec.Spectrum.from_matrix(hessian)
    noise = estimate_noise(operator, spectrum, 8, num_samples=20, weight_decay=DECAY)
    found = start_from_gradient(operator, noise, spectrum)
    ridge = np.linalg.solve(hessian + DECAY * np.eye(12), (batch[0].T @ batch[1] / 4000).numpy()[:, 0])
    eigenvalues, vectors = np.linalg.eigh(hessian)
    grid = octave_counts(spectrum, DECAY, 12)
    expected = grid.total(eigenvalues, (eigenvalues + DECAY) * (vectors.T @ (3.0 - ridge)) ** 2)
    # The subtracted noise is about 1/4000 per coordinate.
    assert (np.abs(found.octaves.mass - expected) < 5 * found.octaves.error * grid.num_eigenvalues + 1e-3).all()
    np.testing.assert_allclose(found.octaves.mass[-4:], expected[-4:], rtol=0.02)
    assert found.source == "gradient"


def test_at_a_minimum_the_gradient_is_not_taken_for_a_start():
    """The sampling noise of the gradient alone would give errors of about σ²B/m."""
    model, loss_fn, batch = regression(num_examples=400)
    with torch.no_grad():
        model.weight.fill_(1.0)
    operator = HessianOperator(model, loss_fn, batch)
    spectrum = ec.Spectrum.from_matrix((batch[0].T @ batch[0] / 400).numpy())
    noise = estimate_noise(operator, spectrum, 1, num_samples=50, weight_decay=1e-9)
    found = start_from_gradient(operator, noise, spectrum)
    left = found.octaves.level - 3 * found.octaves.error
    assert (left < 0.2 * noise.octaves.sigma2 / 400).all()


def test_refusals():
    model, _, operator, hessian = made()
    spectrum = ec.Spectrum.from_matrix(hessian)
    with pytest.raises(TypeError, match=r"'displacement' must be a flat tensor, or a pair \(start, end\)"):
        estimate_start(operator, 3.0, spectrum)
    with pytest.raises(TypeError, match="made of state dicts, modules or flat tensors"):
        estimate_start(operator, (1.0, 2.0), spectrum)
    with pytest.raises(ValueError, match=r"'displacement' must be of 26 numbers, got 'shape \(3,\)'"):
        estimate_start(operator, torch.zeros(3), spectrum)
    with pytest.raises(ValueError, match=r"one with the parameter '0\.weight', got '0 others'"):
        estimate_start(operator, ({}, model), spectrum)
    with pytest.raises(TypeError, match="'noise' must be a NoiseEstimate"):
        start_from_gradient(operator, 1.0, spectrum)
    noise = estimate_noise(operator, spectrum, 4)
    with pytest.raises(ValueError, match="'noise' must be measured with the same spectrum"):
        start_from_gradient(operator, noise, ec.Spectrum([0.1, 5.0], [1, 1]))


def test_a_run_without_a_displacement_starts_at_its_end():
    model, _, operator, hessian = made()
    found = estimate_start(operator, (model, model), ec.Spectrum.from_matrix(hessian))
    assert found.loss == 0
    assert found.num_products == 0


def test_a_finished_checkpoint_needs_no_step(tmp_path):
    model, start, operator, _ = made()
    estimate, path = estimate_spectrum(operator, 20), tmp_path / "start.npz"
    whole = estimate_start(operator, (start, model), estimate, num_products=10, checkpoint=path)
    counting = Counting(operator)
    again = estimate_start(counting, (start, model), estimate, num_products=10, checkpoint=path)
    assert np.array_equal(again.octaves.mass, whole.octaves.mass)
    assert counting.num_products == 1  # the product that makes sure that the checkpoint belongs to the operator
    with pytest.raises(ValueError, match="a checkpoint of another problem"):
        estimate_start(operator, flat(model), estimate, num_products=10, checkpoint=path)
