import itertools

import numpy as np
import pytest
from tests.paper.prediction.toys import small_ridge

import eigencurve as ec
from paper.data.libsvm import SparseRows
from paper.prediction.least_squares import expected_gaps
from paper.prediction.measuring import dense_point, from_matrices
from paper.ridge.experiment import RidgeProblem


@pytest.mark.parametrize("batch_size", [1, 2])
def test_it_is_the_mean_over_every_possible_choice_of_rows(batch_size):
    """Three rows, two steps: all sequences of rows can be written out."""
    matrix = np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [0.3, -1.0, 1.0]])
    problem = RidgeProblem(SparseRows.from_dense(matrix, np.array([1.0, -1.0, 1.0])), 0.05)
    schedule, start = ec.linear(2, 0.2), np.array([0.4, -0.2, 0.1])
    draws = list(itertools.product(range(3), repeat=batch_size))
    gaps = []
    for rows in itertools.product(draws, repeat=2):
        weights = start
        for step, chosen in enumerate(rows):
            x, y = matrix[list(chosen)], problem.rows.labels[list(chosen)]
            slope = 2 * x.T @ (x @ weights - y) / batch_size + 2 * problem.alpha * weights
            weights = weights - schedule(step) * slope
        gaps.append(problem.gaps(weights[:, None])[0])
    found = expected_gaps(problem, schedule, np.array([0, 2]), start, batch_size)
    np.testing.assert_allclose(found, [problem.gaps(start[:, None])[0], np.mean(gaps)], rtol=1e-12)


def test_rounding_errors_do_not_grow_over_a_long_run():
    """At this rate, errors of the covariance that are not symmetric grow by 2.5 times a step if they are kept."""
    problem = small_ridge().ridge
    rate = 1.25 / problem.spectrum.L
    marks = np.array([100, 400])
    early, late = expected_gaps(problem, ec.constant(400, rate), marks, np.zeros(7), batch_size=64)
    assert late == pytest.approx(early, rel=1e-3)  # stationary
    assert late > 0


def test_a_large_batch_at_a_small_rate_has_the_noise_of_the_quadratic():
    problem = small_ridge()
    start, schedule = problem.starts["zero"], ec.cosine(400, 0.02)
    marks = np.array([0, 100, 400])
    exact = expected_gaps(problem.ridge, schedule, marks, start.numpy(), batch_size=32)
    model = from_matrices(problem, dense_point(problem), start, batch_size=32)
    # The part of the noise that depends on the weights is of the order of rate × excess / batch size.
    np.testing.assert_allclose(model.curve(schedule, marks), exact, rtol=2e-3)
    one = expected_gaps(problem.ridge, schedule, marks, start.numpy(), batch_size=1)
    assert one[-1] > 1.01 * from_matrices(problem, dense_point(problem), start).curve(schedule, marks)[-1]
