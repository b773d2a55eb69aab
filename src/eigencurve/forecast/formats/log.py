"""Log: the columns of a training log, filled row by row by the reader of a format, and the errors of all readers."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve._check import Words, quoted, spelled

# Larger files are refused before they are read.
MAX_BYTES = 2**29
# Rows, entries or events in one log.
MAX_ROWS = 10**7
# float64 counts every step up to here.
LARGEST_STEP = 2**53

Keep = Callable[[str], bool]


class LogError(_check.ArgumentValueError):
    """A log that cannot be read. ``value`` is its path; ``constraint`` says what is wrong with it, in one line."""

    def sentence(self, name_of: Callable[[str], str] = quoted, show_none: bool = True) -> str:  # noqa: ARG002
        """The path, the problem and the remedy."""
        text = f"{self.value}: {spelled(self.constraint, name_of)}. {spelled(self.remedy, name_of)}"
        return " ".join(text.split())


def refuse_log(path: Path, problem: str, *remedy: str) -> NoReturn:
    """Raise LogError; ``remedy`` may have several parts, such as :class:`Arg`."""
    raise LogError("load_run", "path", problem, path, remedy)


@dataclass(frozen=True, eq=False)
class Column:
    """One logged quantity.

    Attributes:
        steps: Step of each value, in the order of the file.
        values: The values, NaN and infinity included.
        rows: Number of the line, entry or event of each value, from 1.
    """

    steps: IntArray
    values: Array
    rows: IntArray

    def __getitem__(self, mask: NDArray[np.bool_]) -> Column:
        return Column(self.steps[mask], self.values[mask], self.rows[mask])


@dataclass
class Log:
    """A log that its reader fills row by row.

    Attributes:
        path: Path of the file, for error messages.
        row: What a row is called in this format: ``"line"``, ``"entry"`` or ``"event"``.
        keep: Whether to read a column, by its name.
        run: Name of the run, if the file names it.
        rate_delay: 0 if the learning rate of a row is that of the next update, 1 if that of the last one.
        warnings: What was left out and why, one sentence each.
        names: Names of all columns, in order.
    """

    path: Path
    row: str
    keep: Keep
    run: str = ""
    rate_delay: int = 0
    warnings: list[Words] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)
    _cells: dict[str, tuple[array[int], array[float], array[int]]] = field(default_factory=dict)
    _num_rows: int = 0

    def __post_init__(self) -> None:
        self.keep = cache(self.keep)

    def add(self, number: int, step: Any, values: Mapping[str, Any]) -> None:
        """Add the values of one row that ``keep`` asks for.

        Args:
            number: Number of the row, from 1.
            step: Its step, as a number or text; None if it has none.
            values: Numbers or text by the name of their column.
        """
        self._num_rows += 1
        if self._num_rows > MAX_ROWS:
            self.refuse(f"the log has more than {MAX_ROWS:,} rows", "Keep every hundredth row: a fit needs no more.")
        self.names |= dict.fromkeys(values)
        kept = {name: value for name, value in values.items() if self.keep(name)}
        if not kept:
            return
        if step is None:
            self.refuse(f"{self.row} {number} has no step; its names are {listed(values)}", "Name it 'step'.")
        whole = self._whole(number, step)
        for name, value in kept.items():
            steps, numbers, rows = self._cells.setdefault(name, (array("q"), array("d"), array("q")))
            steps.append(whole)
            numbers.append(self._real(number, name, value))
            rows.append(number)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The columns that have values, by name; complete once the file is read."""
        return {
            name: Column(np.array(steps, np.int64), np.array(values, np.float64), np.array(rows, np.int64))
            for name, (steps, values, rows) in self._cells.items()
        }

    def warn_open_end(self, line: int) -> None:
        """Note that the last line was left out because it may be cut."""
        self.warnings.append(
            f"line {line} has no line end, so it may be cut in the middle of a number, and it is left out. If it is "
            "complete, end the file with a newline."
        )

    def refuse(self, problem: str, *remedy: str) -> NoReturn:
        """Raise LogError for this log."""
        refuse_log(self.path, problem, *remedy)

    def _whole(self, number: int, step: Any) -> int:
        """A step as an int; accepts 100, 100.0 and their texts."""
        try:
            value = float(step)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if not abs(value) <= LARGEST_STEP or value != int(value):
            self.refuse(f"the step of {self.row} {number} must be a whole number, got {str(step)[:40]!r}")
        return int(value)

    def _real(self, number: int, name: str, value: Any) -> float:
        """A number or its text, NaN and infinity included."""
        try:
            return float("true" if isinstance(value, bool) else value)
        except (TypeError, ValueError, OverflowError):
            remedy = "Write decimals with a point." if "," in str(value) else ""
            self.refuse(f"{self.row} {number}, {name[:80]!r}: {str(value)[:40]!r} is not a number", remedy)


def listed(names: Iterable[object], limit: int = 12) -> str:
    """Names for an error message; of many, the first ones.

    >>> listed(["step", "loss"])
    "'step', 'loss'"
    """
    texts = [repr(str(name)[:80]) for name in names]
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return (", ".join(texts[:limit]) or "none") + more
