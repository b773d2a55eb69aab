"""Rows for ridge regression: a4a, any LIBSVM file, or a data set bundled with scikit-learn."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from paper.data.download import fetch
from paper.data.folder import data_folder
from paper.data.libsvm import SparseRows, read_libsvm

A4A_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a4a"
A4A_SHA256 = "694d5abff492bdb8ce9749ddf3bf5af1c6f1f0ad6e3a0ae7818000d4d4c4847b"
A4A_COLUMNS = 123


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
