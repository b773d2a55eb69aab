"""Rows for ridge regression: a4a, any LIBSVM file, or a data set bundled with scikit-learn."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paper import checks
from paper.arrays import Array, IntArray
from paper.data.download import fetch
from paper.data.folder import data_folder

A4A_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a4a"
A4A_SHA256 = "694d5abff492bdb8ce9749ddf3bf5af1c6f1f0ad6e3a0ae7818000d4d4c4847b"
A4A_COLUMNS = 123
# The largest index, and the bytes of the dense matrix or of its Gram matrix.
MOST_COLUMNS = 2**31 - 1
MOST_DENSE_BYTES = 1 << 30
NUMBER = re.compile(r"[-+0-9.eE]+")
INDEX = re.compile(r"[0-9]+")


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A matrix X as compressed sparse rows, and the labels y."""

    labels: Array  # label of each row
    starts: IntArray  # start of each row in `columns` and `values`, followed by their length
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
    labels: list[float] = []
    columns: list[int] = []
    values: list[float] = []
    starts = [0]
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            label, *pairs = line.split()
            try:
                labels.append(_finite(label, f"label {label!r} is not a finite number"))
                _add_entries(pairs, columns, values)
            except ValueError as error:
                found = f"line {number}: {error}"
                checks.refuse("read_libsvm", "path", "a LIBSVM file", found, f"The file is {path}.")
            starts.append(len(values))
    if not values:
        need = "a LIBSVM file with at least one feature"
        checks.refuse("read_libsvm", "path", need, "no rows", f"The file is {path}.")
    largest = max(columns) + 1
    if num_columns is not None and checks.whole("read_libsvm", "num_columns", num_columns, minimum=1) < largest:
        checks.refuse("read_libsvm", "num_columns", f">= the largest index, {largest}", num_columns)
    arrays = np.array(labels), np.array(starts, np.int64), np.array(columns, np.int64), np.array(values)
    return SparseRows(*arrays, num_columns or largest)


def _add_entries(pairs: list[str], columns: list[int], values: list[float]) -> None:
    """Add the entries of one row; an error says what is wrong with the first bad one."""
    before = 0
    for word in pairs:
        index, _, value = word.partition(":")
        number = _finite(value, f"{word!r} is not index:value")
        if not INDEX.fullmatch(index):
            raise ValueError(f"{word!r} is not index:value")
        if len(index.lstrip("0")) > len(str(MOST_COLUMNS)) or int(index) > MOST_COLUMNS:
            raise ValueError(f"index {index:.20} is above {MOST_COLUMNS}")
        if int(index) <= before:
            raise ValueError(f"index {index} does not increase from {before} (indices begin at 1)")
        before = int(index)
        columns.append(before - 1)
        values.append(number)


def _finite(word: str, fault: str) -> float:
    """The number that a word stands for. Python's float also accepts underscores, "nan" and "infinity"."""
    try:
        number = float(word) if NUMBER.fullmatch(word) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(fault)
    return number


def load_rows(path: str | os.PathLike[str] | None = None, download: bool = False) -> tuple[str, SparseRows]:
    """The name of the data and its rows: those of ``path`` if given, else a4a if found, else scikit-learn's data.

    Args:
        path: Path of a LIBSVM file.
        download: Whether to download a4a (to EIGENCURVE_DATA, or the working folder) if it is missing.
    """
    if path is not None:
        return Path(path).name, read_libsvm(path)
    a4a = (data_folder() or Path()) / "a4a"
    if download:
        fetch(A4A_URL, a4a, A4A_SHA256)
    if a4a.is_file():
        return "a4a", read_libsvm(a4a, num_columns=A4A_COLUMNS)
    return "breast cancer", bundled_rows()


def bundled_rows() -> SparseRows:
    """scikit-learn's breast cancer data: 569 rows, 30 features scaled to [0, 1], labels -1 and +1."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError as error:
        hint = "pip install --requirement paper/requirements.txt"
        raise ImportError(f"Without a4a, ridge regression uses data from scikit-learn: {hint}") from error
    bunch = load_breast_cancer()
    matrix = np.asarray(bunch.data, dtype=np.float64)
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    return SparseRows.from_dense((matrix - low) / (high - low), 2.0 * bunch.target - 1)
