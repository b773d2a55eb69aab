import numpy as np
import pytest
import torch
from tests.paper.prediction.toys import PLAN, random_weights, small_logistic, small_ridge

import eigencurve as ec
from paper.prediction.measuring import (
    dense_hessian,
    dense_point,
    example_gradients,
    from_end,
    from_matrices,
    from_start,
    measure_point,
)

MARKS = np.array([0, 10, 60])


def test_dense_matrices_are_those_of_autograd():
    problem = small_logistic()
    weights = random_weights(problem)
    expected = torch.autograd.functional.hessian(problem.objective, weights)
    np.testing.assert_allclose(dense_hessian(problem, weights), expected, rtol=1e-9, atol=1e-12)
    gradients = example_gradients(problem, weights)
    leaf = weights.clone().requires_grad_()
    third = torch.autograd.grad(problem.batch_loss(leaf, problem.inputs[3:4], problem.labels[3:4]), leaf)[0]
    np.testing.assert_allclose(gradients[3], third, rtol=1e-12)
    assert gradients.shape == (60, 7)


def test_the_quadratic_of_ridge_regression_starts_at_the_true_excess_loss(tmp_path):
    """The loss is a quadratic, so all three ways agree at step 0; the measured spectrum is exact in 7 dimensions."""
    problem = small_ridge(num_rows=600)
    start = random_weights(problem)
    end = measure_point(problem, problem.end, PLAN, tmp_path, progress=False)
    here = measure_point(problem, start, PLAN, tmp_path, progress=False)
    dense = dense_point(problem)
    np.testing.assert_allclose(end.prepared.L, dense.eigenvalues[-1], rtol=1e-8)
    models = [from_end(problem, end, start), from_start(problem, here, start), from_matrices(problem, dense, start)]
    for model in models:
        assert model.curve(ec.constant(60, 0.1), MARKS)[0] == pytest.approx(problem.excess(start), rel=1e-6)
    assert [model.floor for model in (models[0], models[2])] == [0.0, 0.0]
    # start_from_gradient subtracts the sampling noise of the gradient, here a few percent, which is part of this loss.
    assert 0 <= models[1].floor < 0.1 * problem.excess(start)


def test_the_noise_is_the_covariance_of_the_examples_along_the_eigenvectors():
    problem = small_logistic()
    dense = dense_point(problem)
    covariance = np.cov(example_gradients(problem, problem.end).T, ddof=0)
    rotated = dense.vectors.T @ covariance @ dense.vectors
    np.testing.assert_allclose(dense.variances, np.diag(rotated), rtol=1e-9)
    hessian = dense.vectors @ np.diag(dense.eigenvalues) @ dense.vectors.T
    np.testing.assert_allclose(hessian, dense_hessian(problem, problem.end), atol=1e-12)


def test_noise_is_divided_by_the_batch_size():
    problem = small_logistic()
    dense, start = dense_point(problem), problem.starts["zero"]
    usual, large = (from_matrices(problem, dense, start, size).quadratic for size in (None, 80))
    np.testing.assert_allclose(usual.noise, 10 * large.noise)
    np.testing.assert_array_equal(usual.initial_error, large.initial_error)


def test_a_prediction_that_diverges_is_infinite():
    problem = small_ridge()
    model = from_matrices(problem, dense_point(problem), problem.starts["zero"])
    assert np.isinf(model.curve(ec.constant(2000, 50.0), np.array([0, 2000]))).all()


def test_a_second_measurement_reads_the_files_of_the_first(tmp_path):
    problem = small_logistic()
    first = measure_point(problem, problem.end, PLAN, tmp_path, progress=False)
    assert len(list(tmp_path.glob("prediction-*-noise.npz"))) == 1
    again = measure_point(problem, problem.end, PLAN, tmp_path, progress=False)
    np.testing.assert_array_equal(first.noise.octaves.sigma2, again.noise.octaves.sigma2)
    assert again.estimate.spectrum == first.estimate.spectrum
