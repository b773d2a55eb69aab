"""Eigencurve: the learning-rate schedule that the curvature of your loss calls for.

The names here are the NumPy core: spectra, schedules. Importing them loads no deep-learning framework.
"""

from importlib.metadata import PackageNotFoundError, version

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
from eigencurve.spectrum.files import load_spectrum, save_spectrum
from eigencurve.spectrum.groups import Groups, LogDensity, extra_term, group, log_density
from eigencurve.spectrum.power_law import PowerLaw, fit_power_law
from eigencurve.spectrum.spectrum import Spectrum, prepare

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
    "hold_then_decay", "inverse_time", "join", "linear", "multistep", "schedule_from_dict", "step_decay", "warmup",
    "wsd",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """``torch_schedule``, which needs PyTorch, is imported when it is asked for."""
    if name == "torch_schedule":
        from eigencurve.adapters.torch import torch_schedule

        return torch_schedule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
