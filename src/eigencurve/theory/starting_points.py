"""The schedules from which a search for the best one starts."""

from __future__ import annotations

import numpy as np

from eigencurve.schedules.base import Schedule
from eigencurve.schedules.eigencurve import curve_of
from eigencurve.schedules.kinds import schedule_of_kind, usual_settings
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.theory.certificate import greedy_schedule
from eigencurve.theory.nodes import Nodes

COMMON = ("constant", "linear", "cosine", "step_decay", "elastic_step", "exponential", "inverse_time", "wsd")
# The number of eigenvalues whose own best schedules are starting points.
NUM_EIGENVALUES = 5


def starting_points(spectrum: Spectrum, nodes: Nodes, total_steps: int, max_lr: float) -> dict[str, Schedule]:
    """Common schedules and Eigencurve at peak rate ``max_lr``, and the best schedules for a few eigenvalues alone."""
    points = {kind: schedule_of_kind(kind, total_steps, max_lr, **usual_settings(kind, max_lr)) for kind in COMMON}
    if spectrum.kappa > 1:
        points["eigencurve"] = curve_of(spectrum, total_steps, max_lr)
        points["eigencurve_optimal"] = curve_of(spectrum, total_steps, max_lr, allocation="optimal")
    for node in np.unique(np.linspace(0, len(nodes) - 1, NUM_EIGENVALUES).astype(int)):
        points[f"best_for_{nodes.lam[node]:.3g}"] = greedy_schedule(nodes, int(node), total_steps, max_lr)
    return points
