"""What different users know before a run of T steps: the inputs of the decisions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.decisions.shapes import NUM_SEEDS, schedule_of
from benchmarks.decisions.tables import Table
from benchmarks.decisions.tasks import Task

from benchmarks.decisions import measuring
from eigencurve.forecast import LoggedRun

# Pairs of shapes that people have logs of: one that decays, and one that decays less or not at all.
PAIRS = (("constant", "cosine"), ("cosine", "wsd20"))
# Rates of the grid with a log, in the decisions that know several.
SEVERAL = ((0, 2, 4, 6), (1, 3, 5))


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What one user knows.

    Attributes:
        kind: Name of the kind of knowledge.
        table: The runs of the task.
        seed: Seed of the runs that are known.
        lr: Peak rate in use; None if the rate is part of the decision.
        logs: Finished runs of T/2 steps: shape and peak rate of each.
        spectrum: File of a measured spectrum with its noise, or None.
    """

    kind: str
    table: Table
    seed: int
    lr: float | None
    logs: tuple[tuple[str, float], ...] = ()
    spectrum: Path | None = None

    @property
    def task(self) -> Task:
        """The task."""
        return self.table.task

    @property
    def runs(self) -> list[LoggedRun]:
        """The known runs, with their validation losses."""
        return [self._run(shape, lr) for shape, lr in self.logs]

    def final_loss(self, shape: str, lr: float) -> float:
        """The last validation loss of a known run."""
        return float(self.table.row(schedule_of(self.task, shape, self.task.horizons[0], lr), self.seed).final_valid)

    def _run(self, shape: str, lr: float) -> LoggedRun:
        schedule = schedule_of(self.task, shape, self.task.horizons[0], lr)
        losses = self.table.row(schedule, self.seed).valid
        losses = losses[: int(np.isfinite(losses).sum())]
        every = self.task.total_steps // 64
        return LoggedRun(every * np.arange(1, len(losses) + 1), losses, schedule, name=f"{shape}, {lr:g}")


def cases(table: Table) -> Iterator[Knowledge]:
    """All decisions of one task."""
    task = table.task
    for seed in range(NUM_SEEDS):
        for lr in task.rates:
            if not _ended(table, seed, lr):
                continue
            yield Knowledge("rate", table, seed, lr)
            yield Knowledge("one log", table, seed, lr, (("cosine", lr),))
            for pair in PAIRS:
                yield Knowledge("two logs", table, seed, lr, tuple((shape, lr) for shape in pair))
            path = measuring.path_of(task, lr, seed)
            if path.exists():
                yield Knowledge("spectrum", table, seed, lr, (), path)
                yield Knowledge("spectrum and log", table, seed, lr, ((measuring.SHAPE, lr),), path)
        for places in SEVERAL:
            rates = [lr for lr in (task.rates[place] for place in places) if _ended(table, seed, lr)]
            for pair in PAIRS:
                yield Knowledge("several rates", table, seed, None, tuple((s, lr) for lr in rates for s in pair))


def _ended(table: Table, seed: int, lr: float) -> bool:
    """Whether no short run at this rate diverged."""
    shapes = {shape for pair in PAIRS for shape in pair}
    steps = table.task.horizons[0]
    return all(np.isfinite(table.row(schedule_of(table.task, s, steps, lr), seed).final_valid) for s in shapes)
