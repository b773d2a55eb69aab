import numpy as np

import eigencurve as ec
from paper.ridge.sgd import run_steps


def test_the_mean_of_many_runs_is_the_exact_expectation_of_the_theory():
    """All rows equal to a, labels fresh in every run: the Hessian is the same for each sample, so the noise is the
    theory's, only along a, and the order of samples does not matter.
    """
    a, alpha, steps, replicas = np.array([1.0, 0.5, 0.0]), 0.05, 40, 4000
    f = ec.cosine(steps, 0.3)
    rng = np.random.default_rng(0)
    starts, columns = np.arange(0, 2 * steps + 1, 2), np.tile([0, 1], steps)
    hessian = 2 * (np.outer(a, a) + alpha * np.eye(3))
    losses = []
    for _ in range(replicas):
        weights = np.array([[1.0], [-1.0], [2.0]])
        scale = np.ones(1)
        labels, order = rng.choice([-1.0, 1.0], steps), rng.permutation(steps)
        run_steps(starts, columns, np.tile(a[:2], steps), labels, order, f.values()[:, None], alpha, weights, scale)
        losses.append(0.5 * float((weights[:, 0] * scale) @ hessian @ (weights[:, 0] * scale)))
    eigenvalues, vectors = np.linalg.eigh(hessian)
    noise = 4 * (vectors.T @ a) ** 2 / eigenvalues  # the labels have mean 0 and variance 1, and so w_* = 0
    error = eigenvalues * (vectors.T @ np.array([1.0, -1.0, 2.0])) ** 2
    q = ec.NoisyQuadratic(ec.Spectrum(eigenvalues, np.ones(3)), noise=noise, initial_error=error)
    standard_error = np.std(losses) / np.sqrt(replicas)
    assert abs(np.mean(losses) - 3 * q.expected_loss(f)) < 4 * standard_error
    assert standard_error < 0.03 * np.mean(losses)
