"""Old names that keep working for one version, with a DeprecationWarning that says where they are now."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any


def moved(old: str, new: str, stacklevel: int = 3) -> Any:
    """The object at ``new``, a dotted path, after a DeprecationWarning that names it.

    Args:
        old: The name that was used.
        new: Where it is now.
        stacklevel: Number of frames from here to the code that used the old name.
    """
    warnings.warn(f"{old} will go in the next version: use {new}.", DeprecationWarning, stacklevel=stacklevel)
    module, _, name = new.rpartition(".")
    return getattr(import_module(module), name)
