"""Plan: the answer to "which schedule should this run use?", with what it is based on."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eigencurve.schedules.base import Schedule

SOURCES = ("measured", "fitted", "given", "assumed")


@dataclass(frozen=True)
class PlanRow:
    """One schedule of a plan's table.

    Attributes:
        name: Name of the schedule.
        schedule: The schedule, at the peak rate that was compared.
        loss: Expected final loss; None if only relative losses are known.
        low: Lower end of the interval of ``loss``, or None.
        high: Upper end of the interval of ``loss``, or None.
        behind: Loss relative to the recommended schedule, minus 1.
        behind_low: Lower end of the interval of ``behind``.
        behind_high: Upper end of the interval of ``behind``.
    """

    name: str
    schedule: Schedule
    loss: float | None
    low: float | None
    high: float | None
    behind: float
    behind_low: float
    behind_high: float


@dataclass(frozen=True)
class PlanInput:
    """One input of a plan.

    Attributes:
        name: What it is, such as ``"gradient noise"``.
        value: Its value as text.
        source: ``"measured"``, ``"fitted"``, ``"given"`` or ``"assumed"``.
        effect: For an assumed input, how the answer changes if it is off by a factor of ten.
    """

    name: str
    value: str
    source: str
    effect: str = ""


@dataclass(frozen=True)
class RateRange:
    """Peak rates that are nearly as good as the recommended one.

    Attributes:
        best: Recommended peak rate.
        low: Lower end of the range.
        high: Upper end of the range.
        limit: What limits the rate, as a clause.
    """

    best: float
    low: float
    high: float
    limit: str


@dataclass(frozen=True, eq=False)
class Plan:
    """The recommended schedule and why; ``print`` shows it all.

    Attributes:
        verdict: The answer in three sentences.
        name: Name of the recommended schedule.
        schedule: The recommended schedule, with its warmup, ready for every adapter.
        rates: Peak rates that are nearly as good.
        table: The recommended schedule and the usual ones, best first.
        inputs: What the verdict is based on.
        gap: How far the recommendation can be from the best possible schedule, relative to its loss; None if there is
            no certificate.
        notes: Warnings and remedies, one sentence each.
        optimizer: Name of the optimizer that the schedule is for.
        momentum: Momentum of SGD.
        weight_decay: Weight decay of the run.
    """

    verdict: str
    name: str
    schedule: Schedule
    rates: RateRange
    table: tuple[PlanRow, ...]
    inputs: tuple[PlanInput, ...]
    gap: float | None
    notes: tuple[str, ...]
    optimizer: str
    momentum: float = 0.0
    weight_decay: float = 0.0

    def __getitem__(self, name: str) -> PlanRow:
        return next(row for row in self.table if row.name == name)

    def to_dict(self) -> dict[str, Any]:
        """The plan as a dict of plain values, for JSON; the schedule can be loaded with ``schedule_from_dict``."""
        return {
            "verdict": self.verdict,
            "name": self.name,
            "schedule": self.schedule.to_dict(),
            "optimizer": self.optimizer,
            "momentum": self.momentum,
            "weight_decay": self.weight_decay,
            "rates": vars(self.rates),
            "gap": self.gap,
            "table": [_row_fields(row) for row in self.table],
            "inputs": [vars(known) for known in self.inputs],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        parts = [textwrap.fill(self.verdict, 100), "", *_table_lines(self.table), "", "Based on:"]
        parts += [f"  {line}" for line in _input_lines(self.inputs)]
        return "\n".join([*parts, *(textwrap.fill(f"Note: {note}", 100) for note in self.notes)])

    def __repr__(self) -> str:
        return f"Plan({self.name}, {self.schedule.total_steps:,} steps, peak rate {self.rates.best:.3g})"


def _row_fields(row: PlanRow) -> Mapping[str, Any]:
    return {**vars(row), "schedule": row.schedule.to_dict()}


def _table_lines(table: tuple[PlanRow, ...]) -> list[str]:
    width = max(8, *(len(row.name) for row in table))
    head = f"{'schedule':<{width}} {'peak lr':>9} {'loss':>10} {'behind':>9} {'interval':>21}"
    return [head, *(_table_line(row, width) for row in table)]


def _table_line(row: PlanRow, width: int) -> str:
    loss = "-" if row.loss is None else f"{row.loss:.4g}" if row.loss < 1 else f"{row.loss:.4f}"
    span = f"{row.behind_low:+.2%} to {row.behind_high:+.2%}" if row.behind_high > row.behind_low else "-"
    peak = float(row.schedule.values().max())
    return f"{row.name:<{width}} {peak:>9.3g} {loss:>10} {row.behind:>+9.2%} {span:>21}"


def _input_lines(inputs: tuple[PlanInput, ...]) -> list[str]:
    width = max(len(known.name) for known in inputs)
    return [
        f"{known.name:<{width}}  {known.source:<8}  {known.value}" + (f" ({known.effect})" if known.effect else "")
        for known in inputs
    ]


def tail_sentence(schedule: Schedule) -> str:
    """How long a schedule holds its rate and how it ends, as a clause.

    >>> from eigencurve.schedules.wsd import wsd
    >>> tail_sentence(wsd(1000, 0.1, 200))
    'hold the rate for 80 % of the run and decay over the last 20 %'
    """
    rates = schedule.values()
    held = int((rates >= 0.99 * rates.max()).nonzero()[0][-1]) + 1
    share = 1 - held / len(rates)
    if share < 0.005:
        return "hold the rate to the end"
    last = rates[-1] / rates.max()
    end = "" if last < 0.05 else f" to {100 * last:.0f} % of the peak"
    if share > 0.9:
        return f"decay from the beginning{end}"
    return f"hold the rate for {100 - 100 * share:.0f} % of the run and decay over the last {100 * share:.0f} %{end}"
