"""SGD on ridge regression, transcribed: one sample a step, full vectors."""

import numpy as np


def ridge_sgd(matrix, labels, alpha, rates, seed, epochs):
    """The final weights; the order of samples and the start are those of the project's experiment."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(-0.05, 0.05, matrix.shape[1])
    t = 0
    for _ in range(epochs):
        for i in rng.permutation(len(matrix)):
            gradient = 2 * (matrix[i] @ weights - labels[i]) * matrix[i] + 2 * alpha * weights
            weights = weights - rates[t] * gradient
            t += 1
    return weights
