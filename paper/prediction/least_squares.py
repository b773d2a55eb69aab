"""The exact expected loss of SGD on ridge regression, with the noise that depends on the weights."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from eigencurve import Schedule
from paper.arrays import Array, IntArray
from paper.ridge.experiment import RidgeProblem


def expected_gaps(problem: RidgeProblem, schedule: Schedule, marks: IntArray, start: Array, batch_size: int) -> Array:
    r"""Expected f(w_t) - f(w_*) after each number of steps, with rows drawn independently.

    The gradient of row i, :math:`2(x_i^\top w - y_i)x_i + 2\alpha w`, varies more the larger the residuals are, so its
    covariance depends on w. For the mean m and the covariance S of w, with the residuals
    :math:`r_i = x_i^\top m - y_i`,

    .. math:: S \leftarrow (I-\eta H)\,S\,(I-\eta H) + \frac{\eta^2}{B}(M - G), \qquad
              M = \frac4n\sum_i (x_i^\top S x_i + r_i^2)\,x_i x_i^\top, \qquad
              G = g g^\top + H_0 S H_0

    where g is the mean gradient of the rows at m, without the L2 term, and :math:`H_0 = 2X^\top X/n`. No model of the
    noise enters, so this is what the mean of infinitely many runs would be.

    Args:
        problem: Ridge regression.
        schedule: Any schedule.
        marks: Numbers of steps, increasing.
        start: Initial weights.
        batch_size: Number of rows B per step.
    """
    matrix, labels = problem.rows.dense(), problem.rows.labels
    products, (first, second), dim = *_products(matrix), matrix.shape[1]
    twice = np.where(first == second, 1.0, 2.0)
    data_hessian = problem.hessian - 2 * problem.alpha * np.eye(dim)
    mean, spread = start.copy(), np.zeros((dim, dim))
    rates, wanted, gaps = schedule.values(), set(marks.tolist()), []
    for step in range(int(marks[-1]) + 1):
        if step in wanted:
            gaps.append(0.5 * np.sum(problem.hessian * spread) + problem.gaps(mean[:, None])[0])
        if step == marks[-1]:
            break
        eta, residual = rates[step], matrix @ mean - labels
        slope = 2 * matrix.T @ residual / len(labels)
        moment = np.empty((dim, dim))
        squares = products @ (twice * spread[first, second]) + residual**2
        moment[first, second] = moment[second, first] = 4 * (products.T @ squares) / len(labels)
        noise = moment - np.outer(slope, slope) - data_hessian @ spread @ data_hessian
        kept = np.eye(dim) - eta * problem.hessian
        spread = kept @ spread @ kept + eta**2 / batch_size * noise
        spread = (spread + spread.T) / 2  # rounding errors that are not symmetric would grow
        mean = mean - eta * (slope + 2 * problem.alpha * mean)
    return np.array(gaps)


def _products(matrix: Array) -> tuple[csr_array, tuple[IntArray, IntArray]]:
    """The products of two entries of each row, as sparse as the data, and the two columns of each product."""
    first, second = np.triu_indices(matrix.shape[1])
    place = np.zeros((matrix.shape[1],) * 2, dtype=np.int64)
    place[first, second] = np.arange(len(first))
    columns, values, starts = [], [], [0]
    for row in matrix:
        (used,) = np.nonzero(row)
        i, j = np.triu_indices(len(used))
        columns.append(place[used[i], used[j]])
        values.append(row[used[i]] * row[used[j]])
        starts.append(starts[-1] + len(i))
    shape = (len(matrix), len(first))
    return csr_array((np.concatenate(values), np.concatenate(columns), np.array(starts)), shape=shape), (first, second)
