"""Schedules of the deep-learning experiments, from plain settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from eigencurve import NoisyQuadratic, Schedule, Spectrum, piecewise, prepare
from eigencurve.schedules.by_kind import own_settings, schedule_of_kind
from eigencurve.theory.optimal import knots_for

NUM_KNOTS = 512
NUM_POINTS = 128


def make_schedule(settings: Mapping[str, Any], total_steps: int, spectra: Mapping[str, Spectrum]) -> Schedule:
    """The schedule that ``settings`` name, over ``total_steps``.

    Args:
        settings: ``schedule``, ``lr``, and the schedule's own settings. ``spectrum`` names one of ``spectra``;
            ``points`` are those of :func:`through_points`, whose kind is ``"points"``; ``decay_share`` is the share of
            the steps that the decay of ``"wsd"`` takes. With ``warmup_steps``, a linear warmup precedes the schedule.
        total_steps: Total number of steps T.
        spectra: Measured spectra, signed, by name.
    """
    kind, lr = settings["schedule"], settings["lr"]
    if kind == "best":
        return best_schedule(_prepared(settings, spectra), total_steps, lr)
    if kind == "points":
        return through_points(settings["points"], total_steps, lr)
    spectrum = _prepared(settings, spectra) if kind == "eigencurve" else None
    own = own_settings(kind, settings)
    if kind == "step_decay":
        own["num_intervals"] = num_intervals(settings["intervals"], total_steps)
    if kind == "wsd":
        own["decay_steps"] = max(1, round(settings["decay_share"] * total_steps))
        own.update({"tail": settings["tail"]} if "tail" in settings else {})
    if kind == "multistep":
        per_epoch = total_steps // settings["epochs"]
        own["milestones"] = [epoch * per_epoch for epoch in settings["milestones"] if epoch < settings["epochs"]]
    return schedule_of_kind(kind, total_steps, lr, spectrum, settings.get("warmup_steps", 0), **own)


def num_intervals(intervals: int | str, total_steps: int) -> int:
    """The number of intervals: ``"log T"`` means ⌊log2 T⌋ (at least 1), ``"log T + 1"`` one more.

    >>> num_intervals("log T + 1", 39_100)
    16
    """
    base = max(1, math.floor(math.log2(total_steps)))
    return {"log T": base, "log T + 1": base + 1}[intervals] if isinstance(intervals, str) else intervals


def through_points(points: Sequence[Sequence[float]], total_steps: int, lr: float) -> Schedule:
    """Straight lines through points (fraction of the run, share of ``lr``), for a schedule that settings spell out.

    >>> through_points([(0.0, 1.0), (0.5, 1.0), (1.0, 0.0)], 5, lr=0.2).values()
    array([0.2, 0.2, 0.2, 0.1, 0. ])
    """
    places, shares = zip(*points, strict=True)
    steps = np.arange(total_steps, dtype=np.float64)
    return piecewise(total_steps, steps, lr * np.interp(steps / max(1, total_steps - 1), places, shares))


def points_of(schedule: Schedule) -> list[tuple[float, float]]:
    """A schedule as points for :func:`through_points`, as many as describe it well.

    >>> from eigencurve import linear
    >>> points_of(linear(5, 0.1, 0.02))
    [(0.0, 1.0), (0.25, 0.84), (0.5, 0.68), (0.75, 0.52), (1.0, 0.36)]
    """
    steps = schedule.total_steps
    knots = knots_for(steps, NUM_POINTS)
    rates = schedule(knots)
    last = max(1, steps - 1)
    shares = rates / rates.max()
    return [(round(float(k) / last, 6), round(float(s), 6)) for k, s in zip(knots, shares, strict=True)]


def best_schedule(prepared: Spectrum, total_steps: int, lr: float) -> Schedule:
    """The numerically best schedule for the quadratic loss with this spectrum, scaled to the largest rate ``lr``.

    The search assumes noise σ² = 1 and initial error 1 in every direction, and rates up to 1/L.
    """
    knots, rates = _best_curve(prepared, total_steps)
    largest = max(rates)
    return piecewise(total_steps, knots, [lr * rate / largest for rate in rates])


def _prepared(settings: Mapping[str, Any], spectra: Mapping[str, Spectrum]) -> Spectrum:
    return prepare(spectra[settings["spectrum"]], settings["weight_decay"])


@lru_cache(maxsize=8)
def _best_curve(prepared: Spectrum, total_steps: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    found = NoisyQuadratic(prepared).search_best(total_steps, max_lr=1 / prepared.L)
    knots = knots_for(total_steps, NUM_KNOTS)
    return tuple(knots.astype(float).tolist()), tuple(found.schedule(knots).tolist())
