"""Log: the columns of a training log, each with its own steps, and the errors that all readers share."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from eigencurve._arrays import Array, IntArray

# Larger files are refused before they are read.
MAX_BYTES = 2**29
# Rows, entries or events in one log.
MAX_ROWS = 10**7
# float64 counts every step up to here.
LARGEST_STEP = 2**53

Keep = Callable[[str], bool]


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


@dataclass(frozen=True, eq=False)
class Log:
    """A log as a reader returns it.

    Attributes:
        names: Names of all columns.
        columns: The columns that were asked for, by name.
        row: What a row is called in this format: ``"line"``, ``"entry"`` or ``"event"``.
        run: Name of the run, if the file names it.
        rate_delay: 0 if the learning rate of a row is that of the next update, 1 if that of the last one.
        notes: What was left out and why, one sentence each.
    """

    names: tuple[str, ...]
    columns: dict[str, Column]
    row: str
    run: str = ""
    rate_delay: int = 0
    notes: tuple[str, ...] = ()


@dataclass
class Cells:
    """The values of one column while its file is read."""

    steps: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    rows: array[int] = field(default_factory=lambda: array("q"))

    def add(self, step: int, value: float, row: int) -> None:
        """Append one value."""
        self.steps.append(step)
        self.values.append(value)
        self.rows.append(row)

    def column(self) -> Column:
        """The finished column."""
        return Column(
            np.array(self.steps, dtype=np.int64),
            np.array(self.values, dtype=np.float64),
            np.array(self.rows, dtype=np.int64),
        )


def refuse_log(path: Path, problem: str, remedy: str = "") -> NoReturn:
    """Raise ValueError for a log that cannot be read, in one line."""
    text = " ".join(f"load_run: {path}: {problem}.".split())
    raise ValueError(text + (f" {remedy}" if remedy else ""))


def left_out(place: str) -> str:
    """The sentence about a last line that was cut, or may have been."""
    return (
        f"{place} has no line end, so it may be cut in the middle of a number, and it is left out. If it is complete, "
        "end the file with a newline."
    )


def listed(names: Iterable[object], limit: int = 12) -> str:
    """Names for an error message; of many, the first ones.

    >>> listed(["step", "loss"])
    "'step', 'loss'"
    """
    texts = [repr(str(name)[:80]) for name in names]
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return (", ".join(texts[:limit]) or "none") + more


def decode(path: Path, content: bytes) -> str:
    """The text of a file, with or without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refuse_log(
            path,
            f"byte {error.start} is not UTF-8 text",
            "A log is a CSV, JSON or TensorBoard file; save text as UTF-8.",
        )


def whole_step(path: Path, place: str, value: Any) -> int:
    """A step as an int; accepts 100, 100.0 and their texts."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        refuse_log(path, f"the step of {place} must be a whole number, got {str(value)[:40]!r}")
    if not abs(number) <= LARGEST_STEP or number != int(number):
        refuse_log(path, f"the step of {place} must be a whole number, got {str(value)[:40]!r}")
    return int(number)


def require_few_rows(path: Path, count: int) -> None:
    """Refuse a log of more than ``MAX_ROWS`` rows."""
    if count > MAX_ROWS:
        refuse_log(path, f"the log has more than {MAX_ROWS:,} rows", "Keep every hundredth row: a fit needs no more.")
