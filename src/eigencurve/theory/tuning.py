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
    """The factor on the rates of ``schedule``, with none above ``max_lr``, at which its expected loss is least.

    A grid of factors is tried first, then Brent's method around the best one. The result is 1 if no factor was found
    that improves on the schedule as given.
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
    found = minimize_scalar(loss, bounds=bracket, method="bounded", options=BRENT)
    if limit >= 1 and losses(np.ones(1))[0] <= min(found.fun, coarse[best]):
        return 1.0
    return limit * (math.exp(float(found.x)) if found.fun < coarse[best] else float(GRID[best]))


def tune(evaluator: Evaluator, schedule: Schedule, max_lr: float) -> Schedule:
    """``schedule`` at its best scale (:func:`best_scale`)."""
    factor = best_scale(evaluator, schedule, max_lr)
    return schedule if factor == 1 else _within(schedule, factor, max_lr)


def rescaled(schedule: Schedule, factor: float) -> Schedule:
    """``schedule`` with every learning rate multiplied by ``factor``.

    >>> from eigencurve import cosine
    >>> rescaled(cosine(10, lr=1.0, min_lr=0.1), 0.5)
    Cosine(total_steps=10, lr=0.5, min_lr=0.05)
    """
    return schedule_from_dict(_scaled(schedule.to_dict(), factor))


def _within(schedule: Schedule, factor: float, max_lr: float) -> Schedule:
    """``schedule`` times ``factor``, lowered by a rounding error if a rate would otherwise exceed ``max_lr``."""
    while True:
        scaled = rescaled(schedule, factor)
        if peak_rate(scaled) <= max_lr:
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
