"""Eigencurve: the learning-rate schedule that the curvature of your loss calls for.

The names here are the NumPy core: spectra, schedules, theory. Importing them loads no deep-learning framework;
``NoisyQuadratic`` and ``torch_schedule`` load numba and PyTorch when they are first asked for.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from eigencurve.schedules.base import Schedule
from eigencurve.schedules.classic import (
    constant,
    cosine,
    exponential,
    hold_then_decay,
    inverse_time,
    linear,
    multistep,
    step_decay,
    wsd,
)
from eigencurve.schedules.compose import join, warmup
from eigencurve.schedules.eigencurve import eigencurve
from eigencurve.schedules.practical import cosine_power, elastic_step
from eigencurve.schedules.serial import schedule_from_dict
from eigencurve.schedules.table import piecewise
from eigencurve.schedules.units import Length, epochs, fraction, steps, tokens
from eigencurve.spectrum.files import load_spectrum, save_spectrum
from eigencurve.spectrum.groups import Groups, LogDensity, extra_term, group, log_density
from eigencurve.spectrum.power_law import PowerLaw, fit_power_law
from eigencurve.spectrum.spectrum import Spectrum, prepare

if TYPE_CHECKING:
    from eigencurve.adapters.torch import torch_schedule
    from eigencurve.theory.quadratic import NoisyQuadratic
    from eigencurve.theory.recursion import DivergenceError

try:
    __version__ = version("eigencurve")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    # spectra
    "Groups", "LogDensity", "PowerLaw", "Spectrum", "extra_term", "fit_power_law", "group", "load_spectrum",
    "log_density", "prepare", "save_spectrum",
    # schedules
    "Schedule", "constant", "cosine", "cosine_power", "eigencurve", "elastic_step", "exponential",
    "hold_then_decay", "inverse_time", "join", "linear", "multistep", "piecewise", "schedule_from_dict", "step_decay",
    "warmup", "wsd",
    # lengths
    "Length", "epochs", "fraction", "steps", "tokens",
    # theory
    "DivergenceError", "NoisyQuadratic",
    # PyTorch
    "torch_schedule",
]  # fmt: skip


# Names that bring a compiler or a framework with them: imported when they are first asked for.
_LATER = {
    "DivergenceError": "eigencurve.theory.recursion",
    "NoisyQuadratic": "eigencurve.theory.quadratic",
    "torch_schedule": "eigencurve.adapters.torch",
}


def __getattr__(name: str) -> Any:
    """``NoisyQuadratic`` needs numba and ``torch_schedule`` PyTorch; nothing else here does."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
