"""Lanczos on a small matrix with full re-orthogonalisation: the tridiagonal that an exact run would give."""

import numpy as np


def lanczos(matvec, start, num_steps):
    """alphas and betas, the last beta being the norm of what is left after ``num_steps`` steps."""
    q = start / np.linalg.norm(start)
    basis, alphas, betas = [q], [], []
    for _ in range(num_steps):
        r = matvec(basis[-1])
        alphas.append(basis[-1] @ r)
        for _ in range(2):
            for v in basis:
                r = r - (v @ r) * v
        betas.append(np.linalg.norm(r))
        basis.append(r / betas[-1])
    return np.array(alphas), np.array(betas)


def lanczos_of_spectrum(eigenvalues, weights, num_steps):
    """Lanczos on the diagonal matrix of the eigenvalues from the root of the weights: as lanczos, with BLAS."""
    q = np.sqrt(weights / np.sum(weights))
    basis = np.zeros((num_steps, len(q)))
    alphas, betas = np.zeros(num_steps), np.zeros(num_steps)
    for j in range(num_steps):
        basis[j] = q
        r = eigenvalues * q
        alphas[j] = q @ r
        for _ in range(2):
            r = r - basis[: j + 1].T @ (basis[: j + 1] @ r)
        betas[j] = np.linalg.norm(r)
        q = r / betas[j]
    return alphas, betas
