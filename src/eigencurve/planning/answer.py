"""Plan: the answer to "which schedule should this run use?", with what it is based on."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eigencurve.planning.training import Training
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.kinds import describe_settings

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

    def __repr__(self) -> str:
        return f"PlanRow({self.name}, behind={self.behind:+.2%}, {type(self.schedule).__name__})"


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
        training: Optimizer that the schedule is for, with its settings.
    """

    verdict: str
    name: str
    schedule: Schedule
    rates: RateRange
    table: tuple[PlanRow, ...]
    inputs: tuple[PlanInput, ...]
    gap: float | None
    notes: tuple[str, ...]
    training: Training

    @property
    def optimizer(self) -> str | None:
        """Name of the optimizer that the schedule is for; None if logs do not tell."""
        return self.training.optimizer

    @property
    def momentum(self) -> float | None:
        """Momentum of SGD, or β₁ of Adam; None if the optimizer is not known."""
        return None if self.training.optimizer is None else self.training.momentum

    @property
    def nesterov(self) -> bool:
        """Whether it is Nesterov momentum."""
        return self.training.nesterov

    @property
    def weight_decay(self) -> float | None:
        """Weight decay of the run; None if the optimizer is not known."""
        return None if self.training.optimizer is None else self.training.weight_decay

    def imports(self) -> list[str]:
        """Imports that :meth:`statements` need in addition to ``import eigencurve as ec``: none."""
        return []

    def statements(self) -> list[str]:
        """The line of Python that makes the schedule from its numbers."""
        return [f"schedule = ec.schedule_from_dict({self.schedule.to_dict()!r})"]

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
            "nesterov": self.nesterov,
            "weight_decay": self.weight_decay,
            "batch_size": self.training.batch_size,
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


def training_inputs(training: Training) -> tuple[PlanInput, ...]:
    """The optimizer, its settings and the batch size, as inputs of a plan; an unknown optimizer has none."""
    found = []
    if training.optimizer is not None:
        law = f"{training.momentum:g}" + (", Nesterov" if training.nesterov else "")
        found = [
            _setting(training, "optimizer", "optimizer", training.optimizer),
            _setting(training, training.momentum_name, "momentum", law),
            _setting(training, "weight decay", "weight_decay", f"{training.weight_decay:g}"),
        ]
    size = training.batch_size
    return tuple(found) if size is None else (*found, PlanInput("batch size", f"{size:,}", "given"))


def _setting(training: Training, name: str, key: str, value: str) -> PlanInput:
    source = training.sources.get(key, "given")
    when = "your optimizer has some" if value == "0" else "yours differs"
    effect = f"pass --{key.replace('_', '-')} if {when}" if source == "assumed" else ""
    return PlanInput(name, value, source, effect)


def _row_fields(row: PlanRow) -> Mapping[str, Any]:
    return {**vars(row), "settings": describe_settings(row.schedule), "schedule": row.schedule.to_dict()}


def _table_lines(table: tuple[PlanRow, ...]) -> list[str]:
    """The table with aligned columns; the losses are left out if none is known."""
    columns = [["schedule", *(row.name for row in table)]]
    columns.append(["peak lr", *(f"{row.schedule.values().max():.3g}" for row in table)])
    if any(row.loss is not None for row in table):
        columns.append(["loss", *(_loss(row.loss) for row in table)])
    columns.append(["behind", *(f"{row.behind:+.2%}" for row in table)])
    columns.append(["interval", *(_span(row) for row in table)])
    widths = [max(map(len, column)) for column in columns]
    settings = ["settings", *(describe_settings(row.schedule) for row in table)]
    lines = []
    for (name, *numbers), what in zip(zip(*columns, strict=True), settings, strict=True):
        cells = [name.ljust(widths[0]), *(text.rjust(w) for text, w in zip(numbers, widths[1:], strict=True)), what]
        lines.append("  ".join(cells).rstrip())
    return lines


def _loss(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:.4g}" if loss < 1 else f"{loss:.4f}"


def _span(row: PlanRow) -> str:
    return f"{row.behind_low:+.2%} to {row.behind_high:+.2%}" if row.behind_high > row.behind_low else "-"


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
