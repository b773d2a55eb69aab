"""The real runs of one problem, many at once and kept in the store, and exact expectations of ridge regression."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from scipy.sparse import csc_array, csr_array
from torch import Tensor
from torch.func import grad, vmap

from eigencurve import Schedule, schedule_from_dict
from eigencurve.runs import Outcome, Run
from paper.arrays import Array, IntArray
from paper.prediction.problems import Problem
from paper.ridge.experiment import RidgeProblem, run_sgd
from paper.training.devices import threads

# Number of steps whose examples are drawn at once.
DRAWN = 500
# A run diverged if its excess loss exceeds the initial one by this factor, or is not finite.
EXPLOSION = 1e3


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
    losses, wanted = [_excess(problem, weights)], set(marks.tolist())
    for step, examples in enumerate(_examples(problem, seeds, schedules[0].total_steps)):
        slope = gradient(weights, problem.inputs[examples], problem.labels[examples])
        weights -= rates[step][:, None] * (slope + problem.weight_decay * weights)
        if step + 1 in wanted:
            losses.append(_excess(problem, weights))
    return np.array(losses)


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
    dim, columns = matrix.shape[1], csc_array(matrix)
    first, second = np.triu_indices(dim)
    products = csr_array(columns[:, first] * columns[:, second])  # of two entries of each row, as sparse as the data
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


@dataclass(frozen=True, eq=False)
class PredictedRuns:
    """Runs of a problem; the settings are the name of the ``start`` and the ``schedule`` as a plain dictionary."""

    problem: Problem  # the problem
    seeds_together: int  # number of seeds that run at once
    metric: str = "excess"
    minimise: bool = True

    @property
    def name(self) -> str:
        """``prediction``, the name of the problem and a hash of it."""
        return f"prediction/{self.problem.name}/{self.problem.digest}"

    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Groups of all schedules from one start, for a few seeds."""
        by_seed: dict[tuple[str, int], list[Run]] = {}
        for run in runs:
            by_seed.setdefault((run.settings["start"], run.seed), []).append(run)
        alike: dict[str, list[list[Run]]] = {}
        for group in by_seed.values():
            alike.setdefault(json.dumps([dict(run.settings) for run in group], sort_keys=True), []).append(group)
        width = self.seeds_together
        parts = [groups[i : i + width] for groups in alike.values() for i in range(0, len(groups), width)]
        return [[run for group in part for run in group] for part in parts]

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Run a group at once; the runs of a seed are next to each other."""
        groups = [list(group) for _, group in groupby(batch, key=lambda run: run.seed)]
        settings = [[run.settings for run in group] for group in groups]
        if any(each != settings[0] for each in settings):  # another process has claimed a part of the group
            return [outcome for group in groups for outcome in self.run(group)]
        schedules = [schedule_from_dict(dict(each["schedule"])) for each in settings[0]]
        start, seeds = self.problem.starts[settings[0][0]["start"]], [group[0].seed for group in groups]
        with threads(1), np.errstate(over="ignore", invalid="ignore"):
            curves = excess_losses(self.problem, start, schedules, seeds)
        marks = curve_marks(schedules[0].total_steps).tolist()
        return [_outcome(marks, curves[:, i, k]) for i in range(len(seeds)) for k in range(len(schedules))]


@dataclass(frozen=True, eq=False)
class ExactExpectations:
    """Exact expectations of ridge regression; settings are ``schedule`` and ``batch_size``, the seed is not used."""

    problem: RidgeProblem  # ridge regression
    digest: str  # hash of the problem
    start: Array  # initial weights
    metric: str = "excess"
    minimise: bool = True

    @property
    def name(self) -> str:
        """``prediction/exact`` and the hash of the problem."""
        return f"prediction/exact/{self.digest}"

    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Every expectation by itself."""
        return [[run] for run in runs]

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Compute each expectation."""
        return [self._expectation(run) for run in batch]

    def _expectation(self, run: Run) -> Outcome:
        schedule = schedule_from_dict(dict(run.settings["schedule"]))
        marks = curve_marks(schedule.total_steps)
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = expected_gaps(self.problem, schedule, marks, self.start, run.settings["batch_size"])
        return _outcome(marks.tolist(), gaps)


def run_of(start: str, schedule: Schedule, seed: int) -> Run:
    """The run from a start under a schedule."""
    return Run({"start": start, "schedule": schedule.to_dict()}, seed)


def _outcome(marks: list[int], excess: Array) -> Outcome:
    last, limit = float(excess[-1]), EXPLOSION * max(abs(float(excess[0])), 1.0)
    curve = tuple((float(t), float(value)) for t, value in zip(marks, excess, strict=True) if np.isfinite(value))
    diverged = not np.isfinite(excess).all() or last > limit
    return Outcome({"excess": last if np.isfinite(last) else float(np.finfo(float).max)}, curve, bool(diverged))
