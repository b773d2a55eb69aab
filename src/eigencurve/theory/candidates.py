"""The schedules that a search starts from: the common ones, and the best one for single eigenvalues."""

from __future__ import annotations

import numpy as np

from eigencurve.schedules.base import Schedule
from eigencurve.schedules.eigencurve import curve_of
from eigencurve.schedules.kinds import schedule_of_kind, usual_settings
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.theory.certificate import greedy_schedule
from eigencurve.theory.nodes import Nodes


def usual_schedules(spectrum: Spectrum, total_steps: int, lr: float) -> dict[str, Schedule]:
    """The schedules in common use at peak rate ``lr``, and Eigencurve with both of its interval lengths."""
    T = total_steps
    kinds = ("constant", "linear", "cosine", "step_decay", "elastic_step", "exponential", "inverse_time", "wsd")
    usual = {kind.replace("_", " "): schedule_of_kind(kind, T, lr, **usual_settings(kind, lr)) for kind in kinds}
    if spectrum.kappa > 1:
        usual["eigencurve"] = curve_of(spectrum, T, lr)
        usual["eigencurve, optimal lengths"] = curve_of(spectrum, T, lr, allocation="optimal")
    return usual


def classic_schedules(spectrum: Spectrum, nodes: Nodes, total_steps: int, max_lr: float) -> dict[str, Schedule]:
    """The usual schedules at peak rate ``max_lr``, and the best schedule for each of up to five eigenvalues alone."""
    classics = usual_schedules(spectrum, total_steps, max_lr)
    for node in np.unique(np.linspace(0, len(nodes) - 1, 5).astype(int)):
        classics[f"best for {nodes.lam[node]:.3g}"] = greedy_schedule(nodes, int(node), total_steps, max_lr)
    return classics
