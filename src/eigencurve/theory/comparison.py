"""A table of schedules: expected loss, its parts, and the gap to the certificate."""

from __future__ import annotations

from dataclasses import dataclass

from eigencurve.schedules.base import Schedule


@dataclass(frozen=True)
class ComparisonRow:
    """One schedule of a :class:`Comparison`.

    Attributes:
        name: Name of the schedule in the table.
        schedule: The schedule, at its tuned rate if tuning was requested.
        peak: Largest learning rate of the schedule.
        bias: Part of the loss that remains from the initial error; None if the schedule diverges.
        variance: Part of the loss caused by the gradient noise; None if the schedule diverges.
        loss: Expected loss; None if the schedule diverges.
        gap: Loss divided by the lower bound, minus 1; None if there is no bound or no loss.
        status: ``"finite"`` or ``"diverged"``.
    """

    name: str
    schedule: Schedule
    peak: float
    bias: float | None
    variance: float | None
    loss: float | None
    gap: float | None
    status: str

    def __repr__(self) -> str:
        return f"ComparisonRow({self.name}, peak={self.peak:.4g}, loss={self.loss:.6g}, {self.status})"


@dataclass(frozen=True)
class Comparison:
    """Schedules in order of increasing loss, those that diverge last; ``print`` shows it as a table.

    Attributes:
        rows: One row per schedule.
        lower_bound: Loss that no schedule with rates up to ``max_lr`` can beat; None with momentum.
        max_lr: Largest rate that the bound allows.
        total_steps: Number of steps T.
    """

    rows: tuple[ComparisonRow, ...]
    lower_bound: float | None
    max_lr: float
    total_steps: int

    def __getitem__(self, name: str) -> ComparisonRow:
        return next(row for row in self.rows if row.name == name)

    def __str__(self) -> str:
        width = max(12, *(len(row.name) for row in self.rows))
        best = self.rows[0].loss
        columns = f"{'peak lr':>11} {'loss':>11} {'bias':>11} {'variance':>11} {'x best':>8} {'gap':>9}"
        lines = [_line(row, width, best) for row in self.rows]
        bound = "no certificate with momentum" if self.lower_bound is None else f"{self.lower_bound:.6g}"
        foot = f"{'lower bound':<{width}} {self.max_lr:>11.4g} {bound:>11}   over {self.total_steps:,} steps"
        return "\n".join([f"{'schedule':<{width}} {columns}", *lines, foot])

    def __repr__(self) -> str:
        return f"Comparison({', '.join(row.name for row in self.rows)}; {self.total_steps:,} steps)"


def ranked(rows: list[ComparisonRow]) -> tuple[ComparisonRow, ...]:
    """``rows`` in order of increasing loss, those that diverge last."""
    return tuple(sorted(rows, key=lambda row: float("inf") if row.loss is None else row.loss))


def _line(row: ComparisonRow, width: int, best: float | None) -> str:
    start = f"{row.name:<{width}} {row.peak:>11.4g}"
    if row.loss is None or row.bias is None or row.variance is None:
        return f"{start} {row.status:>11}"
    ratio = f"{row.loss / best:.3f}" if best else "-"
    gap = "-" if row.gap is None else f"{row.gap:.3%}"
    return f"{start} {row.loss:>11.5g} {row.bias:>11.4g} {row.variance:>11.4g} {ratio:>8} {gap:>9}"
