"""The scale of the learning rate at which a schedule has the least expected loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from eigencurve.schedules.base import Schedule
from eigencurve.schedules.kinds import schedule_from_dict
from eigencurve.schedules.sampling import peak_rate
from eigencurve.theory.evaluators import Evaluator

# Scales tried before the best one is refined, as fractions of the largest.
GRID = np.geomspace(1e-6, 1.0, 37)
BRENT = {"xatol": 1e-4, "maxiter": 25}
# Settings of a schedule that are learning rates.
RATES = frozenset({"lr", "min_lr", "rates"})


def best_scale(evaluator: Evaluator, schedule: Schedule, max_lr: float) -> float:
    """The scale of the rates of ``schedule``, with none above ``max_lr``, at which its expected loss is least.

    A grid of scales is tried first, then Brent's method around the best one. The result is 1 if no scale improves on
    the schedule as given.
    """
    limit = max_lr / peak_rate(schedule)
    losses = evaluator.scaled_losses(schedule)
    coarse = losses(limit * GRID)
    best = int(np.argmin(coarse))
    if not math.isfinite(coarse[best]):
        return limit * float(GRID[0])
    ceiling = 1e3 * (float(coarse[best]) or 1.0)  # Brent's method cannot handle infinity

    def loss(log_scale: float) -> float:
        return min(float(losses(np.array([limit * math.exp(log_scale)]))[0]), ceiling)

    bracket = np.log(GRID[[max(best - 1, 0), min(best + 1, len(GRID) - 1)]])
    minimum = minimize_scalar(loss, bounds=bracket, method="bounded", options=BRENT)
    if limit >= 1 and losses(np.ones(1))[0] <= min(minimum.fun, coarse[best]):
        return 1.0
    return limit * (math.exp(float(minimum.x)) if minimum.fun < coarse[best] else float(GRID[best]))


def tune(evaluator: Evaluator, schedule: Schedule, max_lr: float) -> Schedule:
    """``schedule`` at its best scale (:func:`best_scale`), with no rate above ``max_lr``."""
    scale = best_scale(evaluator, schedule, max_lr)
    if scale == 1:
        return schedule
    while peak_rate(tuned := rescaled(schedule, scale)) > max_lr:  # by a rounding error
        scale *= 1 - 4 * np.finfo(np.float64).eps
    return tuned


def rescaled(schedule: Schedule, scale: float) -> Schedule:
    """``schedule`` with every learning rate multiplied by ``scale``.

    >>> from eigencurve import cosine
    >>> rescaled(cosine(10, lr=1.0, min_lr=0.1), 0.5)
    Cosine(total_steps=10, lr=0.5, min_lr=0.05)
    """
    return schedule_from_dict(_scaled(schedule.to_dict(), scale))


def _scaled(value: Any, scale: float, is_rate: bool = False) -> Any:
    """A setting, or a dictionary or list of settings, with every learning rate multiplied by ``scale``."""
    if isinstance(value, dict):
        return {name: _scaled(item, scale, name in RATES) for name, item in value.items()}
    if isinstance(value, list):
        return [_scaled(item, scale, is_rate) for item in value]
    return value * scale if is_rate and value is not None else value
