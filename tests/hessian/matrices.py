"""Operators of plain matrices, with the interface of a model's operator."""

import hashlib

import numpy as np
import torch


class MatrixOperator:
    """A dense symmetric matrix, or a diagonal one if ``matrix`` has one axis."""

    is_main_process = True

    def __init__(self, matrix, dtype=torch.float64):
        self.matrix = torch.as_tensor(np.asarray(matrix)).to(dtype)
        self.dim, self.dtype, self.device = len(self.matrix), dtype, torch.device("cpu")
        self.num_products = 0

    def __call__(self, vector):
        self.num_products += 1
        return self.matrix * vector if self.matrix.ndim == 1 else self.matrix @ vector

    def fingerprint(self):
        return hashlib.sha256(self.matrix.numpy().tobytes()).hexdigest()

    def min_over_processes(self, value):
        return value


def hessian_like(dim=4000, num_outliers=40):
    """Eigenvalues like those of a trained network: a bulk with power-law tails on both sides, and outliers."""
    num_bulk = dim - num_outliers
    heights = 1e-3 * (num_bulk / (np.arange(num_bulk) + 0.5) - 1)
    bulk = np.where(np.arange(num_bulk) % 4 == 0, -0.3, 1.0) * heights
    return np.concatenate((bulk, np.geomspace(10, 300, num_outliers)))


def start(dim, dtype=torch.float64, seed=0):
    return torch.randn(dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


EIGENVALUES = hessian_like(3000, 20)


def matrix_operator(dtype=torch.float32):
    return MatrixOperator(EIGENVALUES, dtype)


def random_spectrum(rng):
    """Eigenvalues with one of four kinds of bulk, and up to 40 outliers above it."""
    dim, num_outliers = int(np.exp(rng.uniform(np.log(500), np.log(5000)))), int(rng.integers(0, 40))
    num_bulk, scale = dim - num_outliers, 10 ** rng.uniform(-4, -2)
    kind = rng.integers(4)
    if kind == 0:
        bulk = scale * rng.normal(0, 1, num_bulk)
    elif kind == 1:
        bulk = scale * np.exp(rng.normal(0, rng.uniform(0.5, 2), num_bulk))
    elif kind == 2:
        bulk = scale / 10 * (1 - rng.random(num_bulk)) ** (-1 / rng.uniform(0.6, 1.5))
    else:
        bulk = 10 * scale * rng.uniform(0, 1, num_bulk)
    return np.concatenate((bulk, np.abs(bulk).max() * np.exp(rng.uniform(0.1, 6, num_outliers))))


class Counting:
    """Any operator, with its products counted; ``stop_after`` of them, it raises what Ctrl-C raises."""

    def __init__(self, operator, stop_after=None):
        self._operator, self._stop_after, self.num_products = operator, stop_after, 0

    def __getattr__(self, name):
        return getattr(self._operator, name)

    def __call__(self, vector):
        if self.num_products == self._stop_after:
            raise KeyboardInterrupt
        self.num_products += 1
        return self._operator(vector)
