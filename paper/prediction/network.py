"""A small network from scratch: the problem that is far from quadratic."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eigencurve import cosine
from paper.files import write_atomically
from paper.models.making import drawn_from
from paper.models.trained import cifar_batch
from paper.prediction.problems import NUM_CLASSES, Problem, flat_weights

WEIGHT_DECAY, BATCH_SIZE = 5e-4, 32
# Images are averaged over squares of this many pixels, so 3 × 8 × 8 inputs are left.
POOLED = 4
HIDDEN = (96, 32)
# The earlier run: a cosine from this rate. Its points, as fractions of its steps, are starts of the runs.
EARLIER_RATE = 0.3
POINTS = (0.0, 0.1, 0.5, 1.0)
SEED = 0


@dataclass(frozen=True)
class NetworkSize:
    """Size of the network problem."""

    num_images: int | None = None  # number of training images; None uses all
    hidden: Sequence[int] = HIDDEN  # widths of the hidden layers
    earlier_steps: int = 2000  # number of steps of the earlier run


def network(data: Path | None, size: NetworkSize, folder: Path) -> Problem:
    """A perceptron with two hidden layers on small CIFAR-10 images, trained from scratch.

    Runs start from the initial weights and from points of an earlier run, whose end stands for the minimum.

    Args:
        data: Folder of the images; None is the data folder.
        size: Size of the problem.
        folder: Folder that keeps the points of the earlier run, so they are computed once.

    Raises:
        FileNotFoundError: The images are missing.
    """
    inputs, labels = small_images(data, size.num_images)
    model = perceptron(inputs.shape[1], size.hidden)
    initial = flat_weights(model)
    problem = Problem(
        name="network", title=f"network of {initial.numel():,} parameters from scratch", model=model,
        loss_fn=F.cross_entropy, inputs=inputs, labels=labels, weight_decay=WEIGHT_DECAY, batch_size=BATCH_SIZE,
        end=initial, starts={"start": initial}, is_minimum=False,
    )  # fmt: skip
    points = _kept(problem, size.earlier_steps, folder)
    return replace(problem, end=points[-1], starts=dict(zip(map(point_name, POINTS), points, strict=True)))


def small_images(data: Path | None, num_images: int | None = None) -> tuple[Tensor, Tensor]:
    """The training images at a quarter of their resolution, as flat vectors, and their labels."""
    images, labels = cifar_batch(data, num_images)
    return F.avg_pool2d(images, POOLED).flatten(1), labels


def perceptron(num_inputs: int, hidden: Sequence[int] = HIDDEN) -> nn.Sequential:
    """Linear layers with ReLUs between them.

    >>> sum(p.numel() for p in perceptron(192).parameters())
    21962
    """
    widths = (num_inputs, *hidden)
    layers: list[nn.Module] = []
    with drawn_from(SEED):
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(widths[-1], NUM_CLASSES))


def earlier_run(problem: Problem, total_steps: int) -> list[Tensor]:
    """Train from the first start with a cosine; the weights at each fraction in ``POINTS`` of the steps."""
    schedule, source = cosine(total_steps, EARLIER_RATE), np.random.default_rng(SEED)
    marks = [round(point * total_steps) for point in POINTS]
    weights = problem.starts[problem.first].clone()
    points = []
    for step in range(total_steps + 1):
        points += [weights.clone()] * marks.count(step)
        examples = torch.from_numpy(source.integers(0, len(problem.labels), problem.batch_size))
        leaf = weights.clone().requires_grad_()
        loss = problem.batch_loss(leaf, problem.inputs[examples], problem.labels[examples])
        (slope,) = torch.autograd.grad(loss, leaf)
        weights -= schedule(min(step, total_steps - 1)) * (slope + problem.weight_decay * weights)
    return points


def point_name(point: float) -> str:
    """Name of a point of the earlier run.

    >>> [point_name(point) for point in (0.0, 0.1, 1.0)]
    ['start', 'after 10 %', 'end']
    """
    return {0.0: "start", 1.0: "end"}.get(point, f"after {100 * point:g} %")


def _kept(problem: Problem, total_steps: int, folder: Path) -> list[Tensor]:
    """The points of the earlier run, from a file if it has been run."""
    path = folder / f"prediction-earlier-{problem.digest}-{total_steps}.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as archive:
            return [torch.from_numpy(row) for row in archive["points"]]
    points = earlier_run(problem, total_steps)
    buffer = io.BytesIO()
    np.savez(buffer, points=torch.stack(points).numpy())
    write_atomically(path, buffer.getvalue())
    return points
