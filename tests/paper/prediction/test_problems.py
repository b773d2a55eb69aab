import numpy as np
import pytest
import torch
from tests.paper.prediction.toys import random_weights, small_logistic, small_ridge

from paper.prediction.problems import flat_weights


def test_the_loss_is_that_of_the_ridge_problem():
    problem = small_ridge()
    weights = random_weights(problem)
    assert problem.loss(weights) == pytest.approx(problem.ridge.loss(weights.numpy()), rel=1e-12)
    assert problem.excess(weights) == pytest.approx(problem.ridge.gaps(weights.numpy()[:, None])[0], rel=1e-9)
    assert problem.dim == 7
    assert problem.first == "zero"


def test_the_operator_is_at_the_given_weights_and_leaves_the_model_alone():
    problem = small_logistic()
    before, weights = flat_weights(problem.model), random_weights(problem)
    operator = problem.operator_at(weights)
    dense = torch.autograd.functional.hessian(lambda w: problem.batch_loss(w, problem.inputs, problem.labels), weights)
    vector = random_weights(problem, seed=1)
    np.testing.assert_allclose(operator(vector), dense @ vector, rtol=1e-9)
    assert torch.equal(flat_weights(problem.model), before)


def test_the_digest_depends_on_what_runs_depend_on():
    assert small_logistic().digest == small_logistic().digest
    others = {small_logistic().digest, small_logistic((1.0, 0.5)).digest, small_ridge().digest, small_ridge(50).digest}
    assert len(others) == 4
