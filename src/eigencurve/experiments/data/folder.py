"""Where real data lies: under the folder that the environment variable EIGENCURVE_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "EIGENCURVE_DATA"


def data_folder() -> Path | None:
    """The folder, where one is named."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else None


def data_file(name: str) -> Path:
    """A file under the folder.

    Raises:
        FileNotFoundError: no folder is named, or it has no such file.
    """
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError(f"{name} is needed: set {VARIABLE} to the folder that holds it.")
    if not (folder / name).exists():
        raise FileNotFoundError(f"{name} is not in {folder}, the folder that {VARIABLE} names.")
    return folder / name
