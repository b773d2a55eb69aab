"""Training many runs of a task that share their beginnings: every step that two runs have in common is taken once.

Runs of one seed have the same initial weights and the same batches, so runs whose rates agree up to some step are the
same run up to there. A constant rate is the trunk, and every later decay a branch that starts from a copy of its state.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from benchmarks.decisions.models import measure_statistics
from benchmarks.decisions.tasks import Task
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer

Array = NDArray[np.float64]
# Steps between two measurements of the validation loss, and time constants of the weight averages, as shares of T.
NUM_VALIDATIONS = 64
AVERAGES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
NUM_TRAIN = 2000
# A batch whose loss is this many times the first one has diverged; one of ten times the first may be a spike.
DIVERGED = 100.0


@dataclass(frozen=True, eq=False)
class Outcome:
    """One finished run.

    Attributes:
        train: Loss of the batch at every step; NaN after a divergence.
        gradients: Norm of the gradient at every step, before clipping.
        valid_steps, valid: Steps after which the validation loss was measured, and the losses.
        final_train, final_valid: Losses of the last weights on fixed examples.
        averaged_train, averaged_valid: The same for each weight average.
    """

    train: Array
    gradients: Array
    valid_steps: NDArray[np.int64]
    valid: Array
    final_train: float
    final_valid: float
    averaged_train: Array
    averaged_valid: Array


@dataclass(eq=False)
class Run:
    """A run under way."""

    task: Task
    model: nn.Module
    optimizers: list[Optimizer]
    generator: torch.Generator
    averages: list[list[Tensor]]
    step: int = 0
    train: list[float] = field(default_factory=list)
    gradients: list[float] = field(default_factory=list)
    valid: list[tuple[int, float]] = field(default_factory=list)
    diverged: bool = False


def start(task: Task, seed: int) -> Run:
    """A new run at its first step."""
    model = task.new_model(seed)
    weights = [parameter.detach() for parameter in model.parameters()]
    averages = [[weight.clone() for weight in weights] for _ in AVERAGES]
    generator = torch.Generator().manual_seed(1_000_003 + seed)
    return Run(task, model, task.new_optimizers(model, 1.0), generator, averages)


def train_together(task: Task, seed: int, schedules: Sequence[Array]) -> Iterator[tuple[int, Outcome]]:
    """Train one run for each array of rates; yield the place of the array and the outcome, in any order."""
    yield from _branches(start(task, seed), dict(enumerate(schedules)))


def _branches(run: Run, schedules: dict[int, Array]) -> Iterator[tuple[int, Outcome]]:
    """Continue ``run`` under each of the schedules, which agree up to its step."""
    ended = [place for place, rates in schedules.items() if len(rates) == run.step]
    if ended:
        outcome = finish(run)
        yield from ((place, outcome) for place in ended)
    groups: dict[float, dict[int, Array]] = {}
    for place, rates in schedules.items():
        if place not in ended:
            groups.setdefault(float(rates[run.step]), {})[place] = rates
    last = len(groups) - 1
    for number, group in enumerate(groups.values()):
        branch = run if number == last else _branch(run)
        agreed = _agreement(list(group.values()), run.step)
        advance(branch, next(iter(group.values()))[branch.step : agreed])
        yield from _branches(branch, group)


def _branch(run: Run) -> Run:
    """A copy of the run; the task and its data are shared."""
    return copy.deepcopy(run, {id(run.task): run.task})


def _agreement(schedules: Sequence[Array], first: int) -> int:
    """The step up to which all schedules are the same, from ``first`` on."""
    shortest = min(map(len, schedules))
    same = np.all([rates[first:shortest] == schedules[0][first:shortest] for rates in schedules], axis=0)
    return shortest if same.all() else first + int(np.argmin(same))


def advance(run: Run, rates: Array) -> None:
    """Take one step at each of the rates."""
    task, every = run.task, max(1, run.task.total_steps // NUM_VALIDATIONS)
    parameters = list(run.model.parameters())
    weights = [1 / (share * task.total_steps) for share in AVERAGES]
    for rate in rates:
        if not run.diverged:
            _step(run, parameters, float(rate), weights)
        else:
            run.train.append(np.nan)
            run.gradients.append(np.nan)
        run.step += 1
        if run.step % every == 0:
            run.valid.append((run.step, np.nan if run.diverged else valid_loss(task, run.model)))


def _step(run: Run, parameters: list[Tensor], rate: float, weights: list[float]) -> None:
    x, y = run.task.data.batch(run.task.batch_size, run.generator)
    run.model.train()
    for optimizer in run.optimizers:
        optimizer.zero_grad()
        for group in optimizer.param_groups:
            group["lr"] = rate
    loss = run.task.loss(run.model(x), y)
    loss.backward()
    norm = float(torch.nn.utils.get_total_norm([value.grad for value in parameters if value.grad is not None]))
    if run.task.max_norm is not None:
        torch.nn.utils.clip_grads_with_norm_(parameters, run.task.max_norm, torch.tensor(norm))
    for optimizer in run.optimizers:
        optimizer.step()
    for average, weight in zip(run.averages, weights, strict=True):
        # Early on, the plain mean of all weights so far.
        torch._foreach_lerp_(average, [value.detach() for value in parameters], max(weight, 1 / (run.step + 1)))
    value = loss.item()
    run.train.append(value)
    run.gradients.append(norm)
    run.diverged = not np.isfinite(value) or not np.isfinite(norm) or value > DIVERGED * run.train[0]


@torch.no_grad()
def valid_loss(task: Task, model: nn.Module) -> float:
    """Mean loss of the validation examples."""
    model.eval()
    return task.loss(model(task.data.valid_x), task.data.valid_y).item()


@torch.no_grad()
def train_loss(task: Task, model: nn.Module) -> float:
    """Mean loss of :func:`some_training_rows`."""
    x, y = some_training_rows(task)
    model.eval()
    return task.loss(model(x), y).item()


def some_training_rows(task: Task) -> tuple[Tensor, Tensor]:
    """About 2,000 training examples, evenly spaced; fewer windows of text, because each has many characters."""
    count = NUM_TRAIN if task.data.x.dtype.is_floating_point else NUM_TRAIN // 4
    stride = max(1, len(task.data.x) // count)
    return task.data.x[::stride][:count], task.data.y[::stride][:count]


def finish(run: Run) -> Outcome:
    """The outcome of a run that has ended."""
    both = np.array([_losses(run, None), *(_losses(run, average) for average in run.averages)])
    steps, losses = zip(*run.valid, strict=True)
    return Outcome(
        np.array(run.train), np.array(run.gradients), np.array(steps), np.array(losses),
        float(both[0, 0]), float(both[0, 1]), both[1:, 0], both[1:, 1],
    )  # fmt: skip


def _losses(run: Run, average: list[Tensor] | None) -> tuple[float, float]:
    """Training and validation loss of the current weights, or of an average."""
    if run.diverged:
        return np.nan, np.nan
    model = run.model
    if average is not None:
        model = copy.deepcopy(run.model)
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), average, strict=True):
                parameter.copy_(value)
            measure_statistics(model, some_training_rows(run.task)[0])
    return train_loss(run.task, model), valid_loss(run.task, model)
