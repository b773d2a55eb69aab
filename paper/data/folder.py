"""The folder of real data sets, named by the environment variable EIGENCURVE_DATA."""

from __future__ import annotations

import os
from pathlib import Path

from paper import checks

VARIABLE = "EIGENCURVE_DATA"


def data_folder() -> Path | None:
    """The folder that EIGENCURVE_DATA names; None if the variable is not set."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else None


def require_folder(data: Path | None, holding: str) -> Path:
    """``data`` if given, else the data folder.

    Args:
        data: Folder that the user named.
        holding: What the folder must hold, for the error message.

    Raises:
        ValueError: There is neither.
    """
    folder = data or data_folder()
    if folder is None:
        remedy = f"Pass --data or set {VARIABLE}."
        checks.refuse("paper", "data", f"the folder that holds {holding}", None, remedy)
    return folder


def data_file(name: str, data: Path | None = None) -> Path:
    """The file ``name`` in ``data``, or in the data folder.

    Raises:
        FileNotFoundError: No folder is set, or it has no such file.
    """
    folder = data or data_folder()
    if folder is None:
        raise FileNotFoundError(f"{name} is missing: set {VARIABLE} to the folder that holds it.")
    if not (folder / name).exists():
        raise FileNotFoundError(f"{name} is missing in {folder}; {VARIABLE} or --data must name the folder with it.")
    return folder / name
