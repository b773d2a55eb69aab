"""ComparisonTable: schedules in order of their final loss, whatever the losses come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eigencurve.schedules.base import Schedule
from eigencurve.schedules.kinds import describe_settings
from eigencurve.schedules.sampling import peak_rate

NUMBERS = ("loss", "low", "high", "excess", "excess_low", "excess_high", "bias", "variance", "gap")
# The columns whose cells are words, aligned to the left.
TEXT_COLUMNS = ("schedule", "settings")
NO_VALUE, DIVERGED = "-", "diverged"


@dataclass(frozen=True)
class ComparisonRow:
    """One schedule of a :class:`ComparisonTable`.

    Attributes:
        name: Stable identifier of the schedule, such as ``"wsd_20"``; for your own schedules the name you gave.
        schedule: The schedule, at the peak rate that was compared.
        loss: Expected final loss; None if only relative losses are known, or if the schedule diverges.
        low: Lower end of the 80 % interval of ``loss``; None if there is no interval.
        high: Upper end of that interval, or None.
        excess: Loss relative to that of the reference schedule, minus 1; None if the schedule diverges.
        excess_low: Lower end of the interval of ``excess``. It is narrower than that of ``loss``, because most errors
            are common to all schedules.
        excess_high: Upper end of that interval.
        bias: Part of the loss that remains from the initial error, on a quadratic; else None.
        variance: Part of the loss caused by the gradient noise, on a quadratic; else None.
        gap: Loss divided by the lower bound, minus 1; None if there is no bound.
        label: Name to show to people; by default ``name``.
        beyond: Where the schedule goes beyond the logged runs, one sentence each.
    """

    name: str
    schedule: Schedule
    loss: float | None = None
    low: float | None = None
    high: float | None = None
    excess: float | None = None
    excess_low: float | None = None
    excess_high: float | None = None
    bias: float | None = None
    variance: float | None = None
    gap: float | None = None
    label: str = ""
    beyond: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.name)

    @property
    def peak_lr(self) -> float:
        """Highest rate of the schedule."""
        return peak_rate(self.schedule)

    @property
    def diverged(self) -> bool:
        """Whether the rates of the schedule are too high for the loss."""
        return self.loss is None and self.excess is None

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values, for JSON; unknown numbers are left out."""
        numbers = {name: value for name in NUMBERS if (value := getattr(self, name)) is not None}
        return {
            "name": self.name,
            "label": self.label,
            "peak_lr": self.peak_lr,
            "settings": describe_settings(self.schedule),
            "diverged": self.diverged,
            **numbers,
            "beyond": list(self.beyond),
        }

    def __repr__(self) -> str:
        loss = "" if self.loss is None else f", loss={self.loss:.6g}"
        excess = "" if self.excess is None else f", excess={self.excess:+.2%}"
        return f"ComparisonRow({self.name}, peak_lr={self.peak_lr:.4g}{loss}{excess}{', diverged' * self.diverged})"


@dataclass(frozen=True)
class ComparisonTable:
    """Schedules in order of increasing loss, those that diverge last; ``print`` shows it as a table.

    Attributes:
        rows: One row per schedule.
        reference: Name of the schedule whose loss the others are relative to.
        lower_bound: Loss that no schedule with rates up to ``max_lr`` can beat; None if there is no certificate.
        max_lr: Largest rate that the bound allows, or None.
    """

    rows: tuple[ComparisonRow, ...]
    reference: str
    lower_bound: float | None = None
    max_lr: float | None = None

    def __getitem__(self, name: str) -> ComparisonRow:
        return next(row for row in self.rows if row.name == name)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def best(self) -> ComparisonRow:
        """The schedule with the lowest loss."""
        return self.rows[0]

    @property
    def total_steps(self) -> int:
        """Number of steps of the schedules; if they differ, of the longest."""
        return max(row.schedule.total_steps for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values, for JSON; unknown numbers are left out."""
        bound = {"lower_bound": self.lower_bound, "max_lr": self.max_lr}
        numbers = {name: value for name, value in bound.items() if value is not None}
        return {"reference": self.reference, **numbers, "rows": [row.to_dict() for row in self.rows]}

    def columns(self) -> dict[str, list[str]]:
        """The cells of the table as text, by column; columns without any value are left out."""
        return {name: cells for name, cells in _columns(self).items() if any(cell != NO_VALUE for cell in cells)}

    def footer(self) -> list[str]:
        """The sentences below the table: the lower bound, and where schedules go beyond the logged runs."""
        notes = [f"* {note}" for note in dict.fromkeys(sentence for row in self.rows for sentence in row.beyond)]
        if self.lower_bound is None or self.max_lr is None:
            return notes
        limits = f"{self.total_steps:,} steps and rates up to {self.max_lr:.4g}"
        return [f"lower bound: {_number(self.lower_bound, 6)} for every schedule of {limits}", *notes]

    def __str__(self) -> str:
        return "\n".join([*aligned(self.columns()), *self.footer()])

    def __repr__(self) -> str:
        return f"ComparisonTable({', '.join(row.name for row in self.rows)})"


def ranked(rows: Iterable[ComparisonRow]) -> tuple[ComparisonRow, ...]:
    """``rows`` in order of increasing loss, those that diverge last."""
    return tuple(sorted(rows, key=_order))


def percent(fraction: float) -> str:
    r"""A relative difference in percent, with three digits and a space that does not break.

    >>> percent(0.0121), percent(-0.1816), percent(1.3831), percent(0.0)
    ('+1.21\xa0%', '-18.2\xa0%', '+138\xa0%', '0\xa0%')
    """
    value = 100 * fraction
    if abs(value) < 0.005:
        return "0\u00a0%"
    return f"{value:+.{2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0}f}\u00a0%"


def aligned(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """The lines of a text table, header first; all columns but the first and those of text are aligned to the right.

    >>> aligned({"schedule": ["linear", "wsd"], "loss": ["0.5", "diverged"]})
    ['schedule      loss', 'linear         0.5', 'wsd       diverged']
    """
    padded = []
    for place, (name, cells) in enumerate(columns.items()):
        width = max(map(len, [name, *cells]))
        side = "<" if place == 0 or name in TEXT_COLUMNS else ">"
        padded.append([f"{cell:{side}{width}}" for cell in (name, *cells)])
    return ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]


def _order(row: ComparisonRow) -> float:
    value = row.excess if row.loss is None else row.loss
    return math.inf if value is None else value


def _columns(table: ComparisonTable) -> dict[str, list[str]]:
    rows = table.rows
    lengths = [f"{row.schedule.total_steps:,}" for row in rows]
    only_relative = all(row.loss is None for row in rows)
    return {
        "schedule": [row.label + " *" * bool(row.beyond) for row in rows],
        "steps": lengths if len(set(lengths)) > 1 else [NO_VALUE] * len(rows),
        "peak lr": [f"{row.peak_lr:.3g}" for row in rows],
        "loss": [DIVERGED if row.diverged and not only_relative else _number(row.loss, 5) for row in rows],
        "80 % interval": [_span(row.low, row.high, _number) for row in rows],
        "bias": [_number(row.bias) for row in rows],
        "variance": [_number(row.variance) for row in rows],
        "excess": [_excess(row, table.reference, only_relative) for row in rows],
        "excess, 80 %": [_span(row.excess_low, row.excess_high, percent) for row in rows],
        "gap": [NO_VALUE if row.gap is None else percent(row.gap) for row in rows],
    }


def _excess(row: ComparisonRow, reference: str, only_relative: bool) -> str:
    if row.excess is None:
        return DIVERGED if row.diverged and only_relative else NO_VALUE
    return "reference" if row.name == reference else percent(row.excess)


def _number(value: float | None, digits: int = 4) -> str:
    return NO_VALUE if value is None else f"{value:#.{digits}g}".rstrip(".")


def _span(low: float | None, high: float | None, shown: Callable[[float], str]) -> str:
    return NO_VALUE if low is None or high is None or low == high else f"{shown(low)} to {shown(high)}"
