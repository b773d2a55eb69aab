"""The shapes that every task is trained with, at every rate and both horizons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from benchmarks.decisions.tasks import Task

import eigencurve as ec

Shape = Callable[[int, float], ec.Schedule]
TAILS = (20, 40, 60, 80)
NUM_SEEDS = 3

# Identifiers of the shapes; each takes the number of steps after the warmup and the peak rate.
SHAPES: Mapping[str, Shape] = MappingProxyType(
    {
        "constant": ec.constant,
        "cosine": ec.cosine,
        "linear": ec.linear,
        "elastic": ec.elastic_step,
    }
    | {f"wsd{tail}": (lambda steps, lr, tail=tail: ec.wsd(steps, lr, decay=tail / 100)) for tail in TAILS}
)


def schedule_of(task: Task, shape: str, total_steps: int, lr: float) -> ec.Schedule:
    """One schedule of the grid: the task's warmup, and the shape on the steps that are left."""
    return with_warmup(task, SHAPES[shape](total_steps - task.warmup_steps, lr))


def with_warmup(task: Task, schedule: ec.Schedule) -> ec.Schedule:
    """``schedule`` after the task's warmup."""
    return ec.warmup(schedule, task.warmup_steps) if task.warmup_steps else schedule


def grid(task: Task) -> list[ec.Schedule]:
    """All schedules of a task: horizons × rates × shapes."""
    return [schedule_of(task, shape, steps, lr) for steps in task.horizons for lr in task.rates for shape in SHAPES]
