"""ComparisonTable: schedules in order of their final loss, whatever the losses come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eigencurve.schedules.base import Schedule
from eigencurve.schedules.settings import describe_settings


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
        return float(self.schedule.values().max())

    @property
    def diverged(self) -> bool:
        """Whether the rates of the schedule are too high for the loss."""
        return self.loss is None and self.excess is None

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values, for JSON; what is not known is left out."""
        numbers = (
            "loss", "low", "high", "excess", "excess_low", "excess_high", "bias", "variance", "gap",
        )  # fmt: skip
        known = {name: value for name in numbers if (value := getattr(self, name)) is not None}
        extra = {"beyond": list(self.beyond)} if self.beyond else {}
        settings = describe_settings(self.schedule)
        return {"name": self.name, "label": self.label, "peak_lr": self.peak_lr, "settings": settings, **known, **extra}

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

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values, for JSON."""
        bound = {"lower_bound": self.lower_bound, "max_lr": self.max_lr}
        known = {name: value for name, value in bound.items() if value is not None}
        return {"reference": self.reference, "rows": [row.to_dict() for row in self.rows], **known}

    def columns(self) -> Mapping[str, list[str]]:
        """The cells of the table as text, by column; a column that no row has a value for is left out."""
        return {name: cells for name, cells in _columns(self).items() if any(cell != "-" for cell in cells)}

    def __str__(self) -> str:
        columns = [[name, *cells] for name, cells in self.columns().items()]
        widths = [max(map(len, column)) for column in columns]
        lines = [
            "  ".join([cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))])
            for cells in zip(*columns, strict=True)
        ]
        bound = (
            f"no schedule with rates up to {self.max_lr:.4g} ends below {self.lower_bound:.6g}"
            if (self.lower_bound is not None and self.max_lr is not None)
            else ""
        )
        notes = dict.fromkeys(sentence for row in self.rows for sentence in row.beyond)
        return "\n".join(line.rstrip() for line in [*lines, *filter(None, [bound]), *(f"* {note}" for note in notes)])

    def __repr__(self) -> str:
        return f"ComparisonTable({', '.join(row.name for row in self.rows)})"


def ranked(rows: list[ComparisonRow]) -> tuple[ComparisonRow, ...]:
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


def _order(row: ComparisonRow) -> float:
    value = row.loss if row.loss is not None else row.excess
    return float("inf") if value is None else value


def _columns(table: ComparisonTable) -> dict[str, list[str]]:
    rows = table.rows
    return {
        "schedule": [row.label + " *" * bool(row.beyond) for row in rows],
        "peak lr": [f"{row.peak_lr:.3g}" for row in rows],
        "loss": ["diverged" if row.diverged else _number(row.loss) for row in rows],
        "80 % interval": [_span(row.low, row.high) for row in rows],
        "bias": [_number(row.bias) for row in rows],
        "variance": [_number(row.variance) for row in rows],
        "excess": ["-" if row.name == table.reference or row.excess is None else percent(row.excess) for row in rows],
        "interval": [
            "-" if row.excess_low is None or row.excess_high is None or row.excess_low == row.excess_high
            else f"{percent(row.excess_low)} to {percent(row.excess_high)}" for row in rows
        ],
        "gap": ["-" if row.gap is None else percent(row.gap) for row in rows],
    }  # fmt: skip


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}" if 1 <= value < 1000 else f"{value:.4g}"


def _span(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{_number(low)} to {_number(high)}"
