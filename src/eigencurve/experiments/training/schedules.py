"""Schedules of the deep-learning experiments, from plain settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.classic import constant, cosine, inverse_time, multistep, step_decay
from eigencurve.schedules.eigencurve import eigencurve
from eigencurve.schedules.piecewise import piecewise
from eigencurve.schedules.practical import cosine_power, elastic_step
from eigencurve.spectrum.spectrum import Spectrum, prepare
from eigencurve.theory.optimal import knots_for
from eigencurve.theory.quadratic import NoisyQuadratic

NUM_KNOTS = 512


def make_schedule(settings: Mapping[str, Any], total_steps: int, spectra: Mapping[str, Spectrum]) -> Schedule:
    """The schedule that ``settings`` name, over ``total_steps``.

    Args:
        settings: ``schedule``, ``lr``, and what that schedule takes besides; ``spectrum`` names one of ``spectra``.
        total_steps: T.
        spectra: measured ones, signed, by name.
    """
    kind, lr = settings["schedule"], settings["lr"]
    last: Any = settings.get("min_lr")
    if kind == "constant":
        return constant(total_steps, lr)
    if kind == "inverse_time":
        return inverse_time(total_steps, lr, last)
    if kind == "cosine":
        return cosine(total_steps, lr, last)
    if kind == "cosine_power":
        return cosine_power(total_steps, lr, last, settings["alpha"])
    if kind == "elastic_step":
        return elastic_step(total_steps, lr, settings["r"])
    if kind == "step_decay":
        return step_decay(total_steps, lr, num_intervals(settings["intervals"], total_steps), settings["factor"])
    if kind == "multistep":
        per_epoch = total_steps // settings["epochs"]
        milestones = [epoch * per_epoch for epoch in settings["milestones"] if epoch < settings["epochs"]]
        return multistep(total_steps, lr, milestones, settings["factor"])
    if kind not in ("eigencurve", "best"):
        _check.refuse("make_schedule", "schedule", "one of the grids'", kind)
    prepared = prepare(spectra[settings["spectrum"]], settings["weight_decay"])
    if kind == "best":
        return best_schedule(prepared, total_steps, lr)
    return eigencurve(prepared, total_steps, lr, last, settings["beta"])


def num_intervals(intervals: int | str, total_steps: int) -> int:
    """The number of intervals: ``"log T"`` means ⌊log2 T⌋ (at least 1), ``"log T + 1"`` one more.

    >>> num_intervals("log T + 1", 39_100)
    16
    """
    base = max(1, math.floor(math.log2(total_steps)))
    return {"log T": base, "log T + 1": base + 1}[intervals] if isinstance(intervals, str) else intervals


def best_schedule(prepared: Spectrum, total_steps: int, lr: float) -> Schedule:
    """The numerically best schedule for the quadratic loss with this spectrum, scaled to the largest rate ``lr``.

    The search assumes noise σ² = 1 and initial error 1 in every direction, and rates up to 1/L.
    """
    knots, rates = _best_curve(prepared, total_steps)
    largest = max(rates)
    return piecewise(total_steps, knots, [lr * rate / largest for rate in rates])


@lru_cache(maxsize=8)
def _best_curve(prepared: Spectrum, total_steps: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    found = NoisyQuadratic(prepared).search_best(total_steps, max_lr=1 / prepared.L)
    knots = knots_for(total_steps, NUM_KNOTS)
    return tuple(knots.astype(float).tolist()), tuple(found.schedule(knots).tolist())
