"""Eigencurve: the learning-rate schedule that the curvature of your loss calls for.

The names here are the NumPy core: spectra, schedules, theory. Each is imported when it is first asked for, so that
``import eigencurve`` costs next to nothing and no name loads a deep-learning framework but ``torch_schedule``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eigencurve.adapters.torch import torch_schedule
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
    from eigencurve.schedules.piecewise import piecewise
    from eigencurve.schedules.practical import cosine_power, elastic_step
    from eigencurve.schedules.serial import schedule_from_dict
    from eigencurve.schedules.units import Length, epochs, fraction, steps, tokens
    from eigencurve.spectrum.files import load_spectrum, save_spectrum
    from eigencurve.spectrum.groups import Groups, LogDensity, extra_term, group, log_density
    from eigencurve.spectrum.power_law import PowerLaw, fit_power_law
    from eigencurve.spectrum.spectrum import Spectrum, prepare
    from eigencurve.theory.quadratic import NoisyQuadratic
    from eigencurve.theory.recursion import DivergenceError

    __version__: str

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


# Where each name lives. SciPy alone takes most of a second to import, numba and PyTorch more.
_HOMES = {
    "adapters.torch": ("torch_schedule",),
    "schedules.base": ("Schedule",),
    "schedules.classic": (
        "constant", "cosine", "exponential", "hold_then_decay", "inverse_time", "linear", "multistep", "step_decay",
        "wsd",
    ),
    "schedules.compose": ("join", "warmup"),
    "schedules.eigencurve": ("eigencurve",),
    "schedules.practical": ("cosine_power", "elastic_step"),
    "schedules.serial": ("schedule_from_dict",),
    "schedules.piecewise": ("piecewise",),
    "schedules.units": ("Length", "epochs", "fraction", "steps", "tokens"),
    "spectrum.files": ("load_spectrum", "save_spectrum"),
    "spectrum.groups": ("Groups", "LogDensity", "extra_term", "group", "log_density"),
    "spectrum.power_law": ("PowerLaw", "fit_power_law"),
    "spectrum.spectrum": ("Spectrum", "prepare"),
    "theory.quadratic": ("NoisyQuadratic",),
    "theory.recursion": ("DivergenceError",),
}  # fmt: skip
_HOME_OF = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, and keep it."""
    if name != "__version__" and name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = _version() if name == "__version__" else getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _version() -> str:
    metadata = import_module("importlib.metadata")
    try:
        return str(metadata.version("eigencurve"))
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"
