"""What an attack found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Counts:
    """Numbers of one attack.

    Attributes:
        name: Name of the attack.
        cases: Number of cases that were tried.
        survived: Cases that ended as documented: with the right result, or with a documented error.
        rows_lost: Finished runs that were gone afterwards.
        wrong_values: Results that differ from those of an undisturbed run.
        faults: Everything else, and how often it occurred.
        notes: What was measured besides, or why something was left out.
    """

    name: str
    cases: int = 0
    survived: int = 0
    rows_lost: int = 0
    wrong_values: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether every case was survived and nothing was lost."""
        return self.survived == self.cases and not (self.rows_lost or self.wrong_values or self.faults)

    def line(self) -> str:
        """The numbers as one row."""
        return f"{self.name:34}{self.cases:9,}{self.survived:10,}{self.rows_lost:11}{self.wrong_values:14}"


def table(counts: Iterable[Counts]) -> str:
    """All counts, their sum, the faults and the notes."""
    found = list(counts)
    total = Counts("all")
    for name in ("cases", "survived", "rows_lost", "wrong_values"):
        setattr(total, name, sum(getattr(one, name) for one in found))
    lines = [f"{'attack':34}{'cases':>9}{'survived':>10}{'rows lost':>11}{'wrong values':>14}"]
    lines += [one.line() for one in (*found, total)]
    lines += [f"{one.name}: {note}" for one in found for note in one.notes]
    lines += [f"FAULT {one.name}: {fault} ({number} times)" for one in found for fault, number in one.faults.items()]
    return "\n".join(lines)
