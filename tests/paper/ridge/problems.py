"""Small ridge regression problems for the tests."""

import numpy as np

from paper.data.rows import SparseRows
from paper.ridge.experiment import RidgeProblem

# A file in LIBSVM's format.
ROWS = "\n".join(f"{(-1) ** i} {1 + i % 3}:{1 + i % 2} {5 + i % 4}:0.5" for i in range(40)) + "\n"


def problem(num_rows=60, num_columns=7, alpha=1e-3, seed=0):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((num_rows, num_columns)) * (rng.random((num_rows, num_columns)) < 0.5) / 2
    matrix[0, 0] = 1.0
    return RidgeProblem(SparseRows.from_dense(matrix, rng.choice([-1.0, 1.0], num_rows)), alpha)
