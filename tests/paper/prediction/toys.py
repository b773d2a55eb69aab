"""Small problems for the tests."""

import numpy as np
import torch
from tests.paper.ridge.problems import problem as ridge_problem

from paper.prediction.problems import logistic, ridge
from paper.prediction.scales import Plan

PLAN = Plan(60, (0.3, 0.1), 0.1, num_seeds=3, seeds_together=2, num_samples=2, num_products=7, num_steps=7)


def small_ridge(num_rows=60):
    return ridge(ridge_problem(num_rows).rows, "a toy")


def small_logistic(distances=(1.0, 0.1), num_rows=60):
    return logistic(ridge_problem(num_rows, seed=1).rows, "a toy", distances)


def images_file(folder, num=40):
    """A file of random images in the layout of the real one."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (num, 3, 32, 32), dtype=np.uint8)
    np.savez(
        folder / "cifar10_lossless_subset.npz",
        train_images=pixels,
        train_labels=np.arange(num, dtype=np.uint8) % 10,
    )
    return folder


def checkpoint_file(folder, model):
    """A file of the weights of a model in the layout of the real one."""
    (folder / "checkpoints").mkdir()
    arrays = {name: value.numpy() for name, value in model.state_dict().items()}
    np.savez(folder / "checkpoints" / "resnet20_cifar10.npz", **arrays)
    return folder


def random_weights(problem, seed=0):
    return torch.randn(problem.dim, generator=torch.Generator().manual_seed(seed), dtype=problem.end.dtype)
