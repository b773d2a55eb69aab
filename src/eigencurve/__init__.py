"""Eigencurve: the learning rate and the schedule for a training run.

``plan`` recommends both. The other names are the NumPy core: spectra, schedules and theory. Each one is imported on
first use, so ``import eigencurve`` takes almost no time, and only ``torch_schedule`` loads a deep-learning framework.
The stub file ``__init__.pyi`` is the list of these names.
"""

from importlib import import_module
from typing import Any

import lazy_loader

from eigencurve._moved import moved

_import, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
# Names that were here in version 0.1, and the package that has them now.
_MOVED = {
    "group": "spectrum",
    "prepare": "spectrum",
    "Length": "schedules",
    "epochs": "schedules",
    "extend": "schedules",
    "fraction": "schedules",
    "join": "schedules",
    "steps": "schedules",
    "tokens": "schedules",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name == "__version__":
        return _version()
    if name in _MOVED:
        return moved(f"eigencurve.{name}", f"eigencurve.{_MOVED[name]}.{name}")
    return _import(name)


def _version() -> str:
    metadata = import_module("importlib.metadata")
    try:
        return str(metadata.version("eigencurve"))
    except metadata.PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"
