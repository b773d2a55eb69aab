"""Eigencurve: learning-rate schedules from the curvature of your loss.

These names are the NumPy core: spectra, schedules and theory. Each one is imported on first use, so
``import eigencurve`` takes almost no time, and only ``torch_schedule`` loads a deep-learning framework.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eigencurve.adapters.torch import torch_schedule as torch_schedule
    from eigencurve.planning.plan import plan as plan
    from eigencurve.schedules.base import Schedule as Schedule
    from eigencurve.schedules.classic import constant as constant
    from eigencurve.schedules.classic import cosine as cosine
    from eigencurve.schedules.classic import exponential as exponential
    from eigencurve.schedules.classic import hold_then_decay as hold_then_decay
    from eigencurve.schedules.classic import inverse_time as inverse_time
    from eigencurve.schedules.classic import linear as linear
    from eigencurve.schedules.classic import multistep as multistep
    from eigencurve.schedules.classic import step_decay as step_decay
    from eigencurve.schedules.compose import join as join
    from eigencurve.schedules.compose import warmup as warmup
    from eigencurve.schedules.cooldown import cooldown as cooldown
    from eigencurve.schedules.cooldown import extend as extend
    from eigencurve.schedules.decays import inverse_sqrt as inverse_sqrt
    from eigencurve.schedules.decays import polynomial as polynomial
    from eigencurve.schedules.decays import rex as rex
    from eigencurve.schedules.eigencurve import eigencurve as eigencurve
    from eigencurve.schedules.one_cycle import one_cycle as one_cycle
    from eigencurve.schedules.piecewise import piecewise as piecewise
    from eigencurve.schedules.practical import cosine_power as cosine_power
    from eigencurve.schedules.practical import elastic_step as elastic_step
    from eigencurve.schedules.serial import schedule_from_dict as schedule_from_dict
    from eigencurve.schedules.token_budget import over_tokens as over_tokens
    from eigencurve.schedules.units import Length as Length
    from eigencurve.schedules.units import epochs as epochs
    from eigencurve.schedules.units import fraction as fraction
    from eigencurve.schedules.units import steps as steps
    from eigencurve.schedules.units import tokens as tokens
    from eigencurve.schedules.wsd import wsd as wsd
    from eigencurve.schedules.wsd import wsd_cycles as wsd_cycles
    from eigencurve.spectrum.files import load_spectrum as load_spectrum
    from eigencurve.spectrum.files import save_spectrum as save_spectrum
    from eigencurve.spectrum.groups import Groups as Groups
    from eigencurve.spectrum.groups import LogDensity as LogDensity
    from eigencurve.spectrum.groups import extra_term as extra_term
    from eigencurve.spectrum.groups import group as group
    from eigencurve.spectrum.groups import log_density as log_density
    from eigencurve.spectrum.power_law import PowerLaw as PowerLaw
    from eigencurve.spectrum.power_law import fit_power_law as fit_power_law
    from eigencurve.spectrum.spectrum import Spectrum as Spectrum
    from eigencurve.spectrum.spectrum import prepare as prepare
    from eigencurve.theory.quadratic import NoisyQuadratic as NoisyQuadratic
    from eigencurve.theory.recursion import DivergenceError as DivergenceError

    __version__: str

# The module of each public name. SciPy alone takes most of a second to import, numba and PyTorch more.
_NAMES = {
    "spectrum.spectrum": ("Spectrum", "prepare"),
    "spectrum.files": ("load_spectrum", "save_spectrum"),
    "spectrum.groups": ("Groups", "LogDensity", "extra_term", "group", "log_density"),
    "spectrum.power_law": ("PowerLaw", "fit_power_law"),
    "schedules.base": ("Schedule",),
    "schedules.eigencurve": ("eigencurve",),
    "schedules.classic": (
        "constant", "cosine", "exponential", "hold_then_decay", "inverse_time", "linear", "multistep", "step_decay",
    ),
    "schedules.decays": ("inverse_sqrt", "polynomial", "rex"),
    "schedules.one_cycle": ("one_cycle",),
    "schedules.wsd": ("wsd", "wsd_cycles"),
    "schedules.practical": ("cosine_power", "elastic_step"),
    "schedules.piecewise": ("piecewise",),
    "schedules.compose": ("join", "warmup"),
    "schedules.cooldown": ("cooldown", "extend"),
    "schedules.token_budget": ("over_tokens",),
    "schedules.serial": ("schedule_from_dict",),
    "schedules.units": ("Length", "epochs", "fraction", "steps", "tokens"),
    "theory.quadratic": ("NoisyQuadratic",),
    "theory.recursion": ("DivergenceError",),
    "planning.plan": ("plan",),
    "adapters.torch": ("torch_schedule",),
}  # fmt: skip
_HOMES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name on first use, and keep it."""
    if name != "__version__" and name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = _version() if name == "__version__" else getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _version() -> str:
    metadata = import_module("importlib.metadata")
    try:
        return str(metadata.version("eigencurve"))
    except metadata.PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"
