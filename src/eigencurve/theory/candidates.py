"""The schedules in common use, by the names that people read."""

from __future__ import annotations

from eigencurve.schedules.base import Schedule
from eigencurve.schedules.eigencurve import curve_of
from eigencurve.schedules.kinds import schedule_of_kind, usual_settings
from eigencurve.spectrum.spectrum import Spectrum


def usual_schedules(spectrum: Spectrum, total_steps: int, lr: float) -> dict[str, Schedule]:
    """The schedules in common use at peak rate ``lr``, and Eigencurve with both of its interval lengths."""
    T = total_steps
    kinds = ("constant", "linear", "cosine", "step_decay", "elastic_step", "exponential", "inverse_time", "wsd")
    usual = {kind.replace("_", " "): schedule_of_kind(kind, T, lr, **usual_settings(kind, lr)) for kind in kinds}
    if spectrum.kappa > 1:
        usual["eigencurve"] = curve_of(spectrum, T, lr)
        usual["eigencurve, optimal lengths"] = curve_of(spectrum, T, lr, allocation="optimal")
    return usual
