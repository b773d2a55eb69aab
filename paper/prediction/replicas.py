"""SGD for many seeds and schedules at once: every run is one row of a stacked tensor of weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap

from eigencurve import Schedule
from paper.arrays import Array, IntArray
from paper.prediction.problems import Problem
from paper.ridge.experiment import RidgeProblem, run_sgd

# Number of steps whose examples are drawn at once.
DRAWN = 500


def curve_marks(total_steps: int, count: int = 24) -> IntArray:
    """About ``count`` numbers of steps at which the loss is recorded: 0, and evenly spaced in the logarithm up to T.

    >>> curve_marks(100, 4)
    array([  0,   1,   5,  22, 100])
    """
    spaced = np.geomspace(1, total_steps, count).round().astype(np.int64)
    return np.unique(np.concatenate(([0], spaced)))


def excess_losses(problem: Problem, start: Tensor, schedules: Sequence[Schedule], seeds: Sequence[int]) -> Array:
    """Excess loss of every run at the steps of :func:`curve_marks`, shape (marks, seeds, schedules).

    All schedules of a seed see the same examples, each drawn independently. All schedules have the same length. A run
    that diverged has infinite or NaN losses.
    """
    marks = curve_marks(schedules[0].total_steps)
    if problem.ridge is not None:
        return _compiled(problem.ridge, start, schedules, seeds, marks)
    return _stacked(problem, start, schedules, seeds, marks)


def _compiled(
    problem: RidgeProblem, start: Tensor, schedules: Sequence[Schedule], seeds: Sequence[int], marks: IntArray
) -> Array:
    """Ridge regression with one row per step; T is a multiple of the number of rows."""
    epochs = schedules[0].total_steps // len(problem.rows)
    curves = [
        run_sgd(problem, schedules, epochs, seed, replacement=True, start=start.numpy(), marks=marks) for seed in seeds
    ]
    return np.array([[curve[int(mark)] for curve in curves] for mark in marks])


def _stacked(
    problem: Problem, start: Tensor, schedules: Sequence[Schedule], seeds: Sequence[int], marks: IntArray
) -> Array:
    gradient = vmap(vmap(grad(problem.batch_loss), in_dims=(0, None, None)), in_dims=(0, 0, 0))
    weights = start.expand(len(seeds), len(schedules), -1).clone()
    rates = torch.from_numpy(np.stack([schedule.values() for schedule in schedules], axis=1)).to(weights.dtype)
    found, wanted = [_excess(problem, weights)], set(marks.tolist())
    for step, examples in enumerate(_examples(problem, seeds, schedules[0].total_steps)):
        slope = gradient(weights, problem.inputs[examples], problem.labels[examples])
        weights -= rates[step][:, None] * (slope + problem.weight_decay * weights)
        if step + 1 in wanted:
            found.append(_excess(problem, weights))
    return np.array(found)


def _examples(problem: Problem, seeds: Sequence[int], total_steps: int) -> Iterator[Tensor]:
    """The examples of every step, shape (seeds, batch size); those of a seed do not depend on the other seeds."""
    sources = [np.random.default_rng(seed) for seed in seeds]
    for first in range(0, total_steps, DRAWN):
        shape = min(DRAWN, total_steps - first), problem.batch_size
        drawn = [source.integers(0, len(problem.labels), shape) for source in sources]
        yield from torch.from_numpy(np.stack(drawn, axis=1))


def _excess(problem: Problem, weights: Tensor) -> Array:
    with torch.no_grad():
        losses = torch.stack([vmap(problem.objective)(rows) for rows in weights])
    return losses.double().numpy() - problem.end_loss
