"""The model, loss and batches that ``MODULE:FUNCTION`` on the command line returns."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any


def load_problem(word: str) -> tuple[Any, Any, Any]:
    """Import ``module:function`` with the current folder on the path, and return what the function returns."""
    module_name, name = require_problem(word)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.startswith(error.name):
            raise ValueError(f"no module named {error.name!r} in the current folder or on Python's path.") from None
        raise
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"module {module_name!r} has no function {name!r}.")
    try:
        made = function()
    except Exception as error:
        raise RuntimeError(
            f"{word} failed with {type(error).__name__}: {error} (pass --debug for the traceback)"
        ) from error
    if not isinstance(made, tuple) or len(made) != 3:
        raise ValueError(f"{word} must return (model, loss_fn, batches), got {_kind(made)}.")
    return made


def require_problem(word: str) -> tuple[str, str]:
    """The module and the function in ``module:function``; a path such as ``my/model.py:problem`` is corrected."""
    module_name, colon, name = word.partition(":")
    if not (module_name and colon and name):
        raise ValueError(f"MODULE:FUNCTION must look like my_project.training:problem, got {word!r}.")
    if module_name.endswith(".py") or os.sep in module_name:
        dotted = ".".join(Path(module_name.removesuffix(".py")).parts).strip("./")
        raise ValueError(f"MODULE:FUNCTION must name a module, got {word!r}. Did you mean '{dotted}:{name}'?")
    return module_name, name


def _kind(value: object) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
