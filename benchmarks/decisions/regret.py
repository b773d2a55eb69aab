"""The regret of decisions: how much higher the loss ends than with the best schedule of the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from benchmarks.decisions.knowledge import Knowledge, cases
from benchmarks.decisions.rules import RULES
from benchmarks.decisions.shapes import NUM_SEEDS, SHAPES, schedule_of
from benchmarks.decisions.tables import Table

import eigencurve as ec

SEEDS = tuple(range(NUM_SEEDS))


@dataclass(frozen=True, eq=False)
class Decision:
    """One decision of one rule.

    Attributes:
        known: What was known.
        rule: Name of the rule.
        schedule: The schedule that it chose; None if it refused.
        refusal: Why it refused, or an empty string.
    """

    known: Knowledge
    rule: str
    schedule: ec.Schedule | None
    refusal: str = ""

    def regret(self, quantity: str = "final_valid") -> float:
        """Mean loss over all seeds relative to the best schedule of the table, minus 1; infinite after a divergence.

        If the rate is given, the best schedule is the best one at this rate.
        """
        if self.schedule is None:
            return np.nan
        mean = mean_loss(self.known.table, self.schedule, quantity)
        return mean / best_loss(self.known.table, self.known.lr, quantity) - 1 if np.isfinite(mean) else np.inf


def mean_loss(table: Table, schedule: ec.Schedule, quantity: str) -> float:
    """Mean over the seeds of a final loss; NaN if one run diverged."""
    return float(np.mean([getattr(table.row(schedule, seed), quantity) for seed in SEEDS]))


def best_loss(table: Table, lr: float | None, quantity: str) -> float:
    """The lowest mean loss of the grid's longer runs: of all, or of those at one rate."""
    task = table.task
    rates = task.rates if lr is None else [lr]
    schedules = [schedule_of(task, shape, task.total_steps, rate) for rate in rates for shape in SHAPES]
    return float(np.nanmin([mean_loss(table, schedule, quantity) for schedule in schedules]))


def decide(table: Table, kinds: Iterable[str] = tuple(RULES)) -> list[Decision]:
    """All decisions of a task; what they name and the table does not contain is trained."""
    decisions = [_decision(known, name) for known in cases(table) if known.kind in kinds for name in RULES[known.kind]]
    table.complete([decision.schedule for decision in decisions if decision.schedule is not None], SEEDS)
    return decisions


def _decision(known: Knowledge, name: str) -> Decision:
    try:
        return Decision(known, name, RULES[known.kind][name](known))
    except ValueError as error:
        return Decision(known, name, None, str(error))
