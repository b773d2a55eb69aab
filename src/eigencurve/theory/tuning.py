"""The learning rate at which a schedule does best, and the classic schedules to begin a search from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from eigencurve._arrays import Array
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.by_kind import schedule_of_kind, usual_settings
from eigencurve.schedules.eigencurve import eigencurve
from eigencurve.schedules.serial import schedule_from_dict
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.theory.certificate import greedy_schedule
from eigencurve.theory.nodes import Nodes
from eigencurve.theory.recursion import final_loss

# Peak rates tried, from 1e-6 of the largest up to it, before the best of them is refined.
GRID = np.geomspace(1e-6, 1.0, 37)
RATES = frozenset({"lr", "min_lr", "rates"})


def rescaled(schedule: Schedule, factor: float) -> Schedule:
    """``schedule`` with every learning rate multiplied by ``factor``.

    >>> from eigencurve import cosine
    >>> rescaled(cosine(10, lr=1.0, min_lr=0.1), 0.5)
    Cosine(total_steps=10, lr=0.5, min_lr=0.05)
    """
    return schedule_from_dict(_scaled(schedule.to_dict(), factor))


def tuned(nodes: Nodes, schedule: Schedule, max_lr: float) -> Schedule:
    """``schedule`` at the scale, with no rate above ``max_lr``, at which its expected loss is least.

    A grid of scales, then Brent's method around the best of them; never worse than the schedule as it is.
    """
    rates = schedule.values()
    limit = max_lr / float(rates.max())

    def loss(log_scale: float) -> float:
        return final_loss(nodes, rates * (limit * math.exp(min(log_scale, 0.0))))

    logs = np.log(GRID)
    losses = np.array([loss(value) for value in logs])
    best = int(np.argmin(losses))
    if not math.isfinite(losses[best]):
        return _within(schedule, limit * float(GRID[0]), max_lr)
    bracket = (logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)])
    ceiling = 1e3 * (float(losses[best]) or 1.0)  # Brent's method cannot reckon with infinity
    options = {"xatol": 1e-4, "maxiter": 25}
    found = minimize_scalar(lambda x: min(loss(x), ceiling), bounds=bracket, method="bounded", options=options)
    choice = found.x if found.fun < losses[best] else logs[best]
    if limit >= 1 and final_loss(nodes, rates) <= min(found.fun, losses[best]):
        return schedule
    return _within(schedule, limit * math.exp(choice), max_lr)


def usual_schedules(spectrum: Spectrum, total_steps: int, lr: float) -> dict[str, Schedule]:
    """The schedules of today at peak rate ``lr``, and Eigencurve with its two ways of sharing out the steps."""
    T = total_steps
    kinds = ("constant", "linear", "cosine", "step_decay", "elastic_step", "exponential", "inverse_time", "wsd")
    usual = {kind.replace("_", " "): schedule_of_kind(kind, T, lr, **usual_settings(kind, T, lr)) for kind in kinds}
    if spectrum.kappa > 1:
        usual["eigencurve"] = eigencurve(spectrum, T, lr)
        usual["eigencurve, optimal lengths"] = eigencurve(spectrum, T, lr, allocation="optimal")
    return usual


def classic_schedules(spectrum: Spectrum, nodes: Nodes, total_steps: int, max_lr: float) -> dict[str, Schedule]:
    """The usual schedules at peak rate ``max_lr``, and the best one of a few single eigenvalues."""
    classics = usual_schedules(spectrum, total_steps, max_lr)
    for node in np.unique(np.linspace(0, len(nodes) - 1, 5).astype(int)):
        classics[f"best for {nodes.lam[node]:.3g}"] = greedy_schedule(nodes, int(node), total_steps, max_lr)
    return classics


def largest_rate(schedule: Schedule) -> float:
    """The highest rate of all steps."""
    return float(schedule.values().max())


def _within(schedule: Schedule, factor: float, max_lr: float) -> Schedule:
    """``schedule`` times ``factor``, a rounding error lower where that would pass ``max_lr``."""
    while True:
        scaled = rescaled(schedule, factor)
        if largest_rate(scaled) <= max_lr:
            return scaled
        factor *= 1 - 4 * np.finfo(np.float64).eps


def _scaled(settings: dict[str, Any], factor: float) -> dict[str, Any]:
    return {name: _times(value, factor) if name in RATES else _inner(value, factor) for name, value in settings.items()}


def _times(value: Any, factor: float) -> Any:
    if value is None:
        return None
    return [item * factor for item in value] if isinstance(value, list) else value * factor


def _inner(value: Any, factor: float) -> Any:
    if isinstance(value, dict):
        return _scaled(value, factor)
    return [_inner(item, factor) for item in value] if isinstance(value, list) else value


def losses_of(nodes: Nodes, schedules: dict[str, Schedule]) -> Array:
    """The expected loss of each schedule, in order; infinite where it diverges."""
    return np.array([final_loss(nodes, np.array(schedule.values())) for schedule in schedules.values()])
