"""Compiled SGD for ridge regression compared with a plain NumPy loop: ``python -m benchmarks.ridge``.

The data is a4a if EIGENCURVE_DATA has it, otherwise random rows of the same shape (4,781 rows, 123 binary features, 14
of them set). The schedules are spread over the experiment's own grid. The plain loop uses dense vectors and runs one
schedule at a time with precomputed rates; both see the same samples and end at the same weights. scikit-learn's
SGDRegressor runs one schedule of its own (inverse scaling) for the same number of epochs on the same sparse rows.
"""

import time

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDRegressor
from tests.reference.sgd import ridge_sgd

from paper.data.rows import SparseRows, load_rows
from paper.ridge.experiment import WIDTH, RidgeProblem, grids, make_schedule, run_sgd

EPOCHS = 5


def like_a4a():
    rng = np.random.default_rng(0)
    matrix = np.zeros((4781, 123))
    for row in matrix:
        row[rng.choice(123, 14, replace=False)] = 1.0
    return SparseRows.from_dense(matrix, rng.choice([-1.0, 1.0], 4781))


def best_of_three(call):
    """The result, and the shortest of three times, which is the least disturbed by other work on the machine."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return result, min(times)


def regressor(problem):
    """SGD on the same objective; scikit-learn has half of the squared error and half of alpha."""
    return SGDRegressor(
        alpha=problem.alpha, max_iter=EPOCHS, tol=None, fit_intercept=False, learning_rate="invscaling", eta0=0.01
    )


def main():
    name, rows = load_rows()
    if name != "a4a":
        name, rows = "rows like a4a's", like_a4a()
    problem = RidgeProblem(rows)
    gentle = [s for grid in grids(EPOCHS).values() for s in grid if s["lr"] <= 0.02]
    chosen = [gentle[i] for i in np.linspace(0, len(gentle) - 1, WIDTH).astype(int)]
    schedules = [make_schedule(settings, problem) for settings in chosen]
    run_sgd(problem, schedules, EPOCHS, seed=0)  # compiles
    total = EPOCHS * len(rows)
    curve, ours = best_of_three(lambda: run_sgd(problem, schedules, EPOCHS, seed=0))
    rates, matrix = schedules[0].values(), rows.dense()
    weights, plain = best_of_three(lambda: ridge_sgd(matrix, rows.labels, problem.alpha, rates, 0, EPOCHS))
    ours, plain = ours / WIDTH / total, plain / total
    np.testing.assert_allclose(curve[total][0], problem.gaps(weights[:, None])[0], rtol=1e-9)
    print(f"{name}, {EPOCHS} epochs, {WIDTH} schedules of the grid at once, one core:")
    print(f"{ours * 1e9:.1f} ns a step and schedule, {plain * 1e9:,.0f} ns in NumPy: {plain / ours:,.0f} x")
    theirs = best_of_three(lambda: regressor(problem).fit(csr_matrix(matrix), rows.labels))[1] / total
    print(f"scikit-learn's SGDRegressor: {theirs * 1e9:.1f} ns a step, {theirs / ours:,.1f} x")


if __name__ == "__main__":
    main()
