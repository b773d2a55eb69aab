"""LIBSVM files: each line has a label and "index:value" pairs, with increasing indices that start at 1."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from paper import checks
from paper.arrays import Array, IntArray
from paper.data.limits import MOST_COLUMNS, MOST_DENSE_BYTES

# Python's float accepts more than a file may hold: underscores, "nan", "infinity".
LINE = re.compile(rb"\s*[-+0-9.eE]+(?:\s+[0-9]+:[-+0-9.eE]+)*\s*")
NUMBER = re.compile(r"[-+0-9.eE]+")
INDEX = re.compile(r"[0-9]+")


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A matrix X as compressed sparse rows, and the labels y."""

    labels: Array  # label of each row
    starts: IntArray  # start of each row in ``columns`` and ``values``, followed by their length
    columns: IntArray  # column of each entry, starting at 0
    values: Array  # value of each entry, finite
    num_columns: int  # number of columns of X

    def __len__(self) -> int:
        return len(self.labels)

    def dense(self) -> Array:
        """X as a dense matrix.

        Raises:
            ValueError: X, or XᵀX, would be larger than a gigabyte.
        """
        if 8 * self.num_columns * max(len(self), self.num_columns) > MOST_DENSE_BYTES:
            need = f"at most {MOST_DENSE_BYTES >> 20} MB as a matrix, and as XᵀX"
            checks.refuse("SparseRows.dense", "rows", need, f"{len(self)} × {self.num_columns}")
        matrix = np.zeros((len(self), self.num_columns))
        matrix[np.repeat(np.arange(len(self)), np.diff(self.starts)), self.columns] = self.values
        return matrix

    @classmethod
    def from_dense(cls, matrix: Array, labels: Array) -> SparseRows:
        """The non-zero entries of ``matrix``, row by row."""
        rows, columns = np.nonzero(matrix)
        starts = np.searchsorted(rows, np.arange(len(matrix) + 1))
        return cls(np.asarray(labels, float), starts, columns, matrix[rows, columns], matrix.shape[1])


def read_libsvm(path: str | os.PathLike[str], num_columns: int | None = None) -> SparseRows:
    """Read a LIBSVM file; blank lines and lines that start with # are ignored.

    Args:
        path: Path of the file.
        num_columns: Number of columns of X; None for the largest index.

    Raises:
        ValueError: The file is not in the format. The message has the line number.
    """
    text = Path(path).read_bytes()
    lines = [line for line in text.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#")]
    rows = _all_at_once(lines)
    if rows is None:
        _explain(path, text)
    if num_columns is None:
        return rows
    if rows.num_columns > checks.whole("read_libsvm", "num_columns", num_columns, minimum=1):
        checks.refuse("read_libsvm", "num_columns", f">= the largest index, {rows.num_columns}", num_columns)
    return SparseRows(rows.labels, rows.starts, rows.columns, rows.values, num_columns)


def _all_at_once(lines: list[bytes]) -> SparseRows | None:
    """Convert all numbers at once; None if anything is out of order."""
    counts = np.array([line.count(b":") for line in lines])
    if not all(map(LINE.fullmatch, lines)) or counts.sum() == 0:
        return None
    try:
        numbers = np.array(b" ".join(lines).replace(b":", b" ").split(), dtype=np.float64)
    except ValueError:
        return None
    firsts = np.concatenate(([0], np.cumsum(2 * counts + 1)))
    if firsts[-1] != len(numbers) or not np.isfinite(numbers).all():
        return None
    return _assembled(numbers, firsts[:-1], counts)


def _assembled(numbers: Array, firsts: IntArray, counts: IntArray) -> SparseRows | None:
    pairs = np.delete(numbers, firsts).reshape(-1, 2)
    columns = np.minimum(pairs[:, 0], MOST_COLUMNS + 1).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(counts)))
    new_row = np.zeros(len(columns) + 1, dtype=bool)
    new_row[starts] = True
    rising = (np.diff(columns) > 0) | new_row[1:-1]
    is_index = (columns == pairs[:, 0]) & (columns >= 1) & (columns <= MOST_COLUMNS)
    if not is_index.all() or not rising.all():
        return None
    return SparseRows(numbers[firsts], starts, columns - 1, pairs[:, 1].copy(), int(columns.max()))


def _explain(path: str | os.PathLike[str], text: bytes) -> NoReturn:
    """Find the line that is out of order and raise an error that says what is wrong with it."""
    lines = text.decode("utf-8", errors="replace").split("\n")
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            fault = _fault(line.split())
            if fault:
                checks.refuse("read_libsvm", "path", "a LIBSVM file", f"line {number}: {fault}", f"The file is {path}.")
    checks.refuse("read_libsvm", "path", "a LIBSVM file with at least one feature", "no rows", f"The file is {path}.")


def _fault(words: list[str]) -> str:
    if not NUMBER.fullmatch(words[0]) or not _is_number(words[0]):
        return f"label {words[0]!r} is not a finite number"
    before = 0
    for word in words[1:]:
        index, colon, value = word.partition(":")
        if not colon or not INDEX.fullmatch(index) or not NUMBER.fullmatch(value) or not _is_number(value):
            return f"{word!r} is not index:value"
        if len(index.lstrip("0")) > len(str(MOST_COLUMNS)) or int(index) > MOST_COLUMNS:
            return f"index {index:.20} is above {MOST_COLUMNS}"
        if int(index) <= before:
            return f"index {index} does not increase from {before} (indices begin at 1)"
        before = int(index)
    return ""


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False
