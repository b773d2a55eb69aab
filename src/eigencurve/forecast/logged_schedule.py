"""The schedule of a run from the learning rates in its log, with a warning about each part that is not logged."""

from __future__ import annotations

import numpy as np

from eigencurve._arrays import Array, IntArray
from eigencurve._check import Arg, Words
from eigencurve.forecast.ramp import Ramp, ramp_of
from eigencurve.forecast.runs import through
from eigencurve.schedules.piecewise import Piecewise

# Fraction of the steps, or of the sum of the rates, that the log may leave open without a warning.
TOLERANCE = 0.01
# A first row at the logging interval is normal if it is within this fraction of the run.
FIRST_ROW = 0.05
# A warmup from zero: the line through the first rates meets zero this close to step 0, in steps or as a fraction.
ORIGIN_STEPS, ORIGIN_FRACTION = 1.5, 0.02
# Largest relative difference of the last two slopes if the last one is to continue; a cosine has 0.5 near its end.
SIMILAR_SLOPES = 0.6

Point = tuple[float, float]
WHOLE_SCHEDULE = ("Pass the schedule of the run as ", Arg("schedule"), ".")


def schedule_from_rates(
    steps: IntArray, rates: Array, total_steps: int, warmup_steps: int | None = None
) -> tuple[Piecewise, list[Words]]:
    """The piecewise linear schedule through logged rates, and a sentence for each thing that it had to assume.

    The rate at step t is that of the update from t to t + 1 completed steps. Between two logged rates the schedule is
    the straight line; a warmup that ends between them is solved for (:func:`~.ramp.ramp_of`). Before the first one it
    rises from 0 if ``warmup_steps`` is given or if the first rates rise on a line through the origin; otherwise it is
    constant. After the last one the line continues for up to one logging interval if the last two segments have similar
    slopes; otherwise the rate is constant.

    Args:
        steps: Steps of the logged rates, increasing from 0 or more.
        rates: The logged rates, not negative, one of them above 0.
        total_steps: Number of steps T of the schedule.
        warmup_steps: Number of steps of a linear warmup that the log does not show.
    """
    knots = steps.astype(np.float64)
    start, notes = _start(knots, rates, total_steps, warmup_steps)
    end, end_notes = _end(knots, rates, total_steps)
    num_logged, ramp = 0, ramp_of(knots, rates, warmup_steps)
    if ramp is not None:
        notes += _ramp_note(ramp, knots, rates)
        num_logged = ramp.before + 1
        knots, rates = np.insert(knots, ramp.before, ramp.end), np.insert(rates, ramp.before, ramp.rate)
    notes += _gaps(knots, rates, total_steps, num_logged) + end_notes
    num_inside = int(np.searchsorted(knots, total_steps - 1)) + 1
    points = [*start, *zip(knots[:num_inside], rates[:num_inside], strict=True), *end]
    return through(total_steps, *np.array(points).T), notes


def _start(knots: Array, rates: Array, total_steps: int, warmup_steps: int | None) -> tuple[list[Point], list[Words]]:
    """Steps and rates before the first logged rate, and a warning about them."""
    first, rate = float(knots[0]), float(rates[0])
    if first == 0:
        return [], []
    if warmup_steps:
        rise = float(min(warmup_steps, first))
        return [(0.0, rate / (rise + 1)), *([(rise, rate)] if rise < first else [])], []
    if (value := _origin(knots, rates)) is not None:
        return [(0.0, value)], []
    interval = float(knots[1]) - first if len(knots) > 1 else 0.0
    if first <= max(TOLERANCE * total_steps, min(interval + 1, FIRST_ROW * total_steps)):
        return [(0.0, rate)], []
    unlogged = f"no learning rate is logged before step {first:,.0f} ({first / total_steps:.1%} of the run)"
    remedy = ("If the run had a warmup, pass ", Arg("warmup_steps"), " or ", Arg("schedule"), ".")
    return [(0.0, rate)], [(f"{unlogged}, and {rate:g} is assumed there. ", *remedy)]


def _origin(knots: Array, rates: Array) -> float | None:
    """The rate at step 0 if the first rates rise on a line from zero, or None."""
    if len(rates) < 2 or rates[1] <= rates[0]:
        return None
    ramp = ramp_of(knots, rates)
    if ramp is not None and ramp.before == 1:
        return 0.0
    slope = (rates[1] - rates[0]) / (knots[1] - knots[0])
    value = rates[0] - slope * knots[0]
    return max(0.0, float(value)) if abs(value) <= max(ORIGIN_STEPS * slope, ORIGIN_FRACTION * rates[0]) else None


def _ramp_note(ramp: Ramp, knots: Array, rates: Array) -> list[Words]:
    """A warning about the end of the warmup, if the sum of all rates may be off by more than 1 %."""
    open_area = ramp.rate * max(ramp.last - ramp.end, ramp.end - ramp.first) / 2
    if open_area <= TOLERANCE * _sum_of_rates(knots, rates):
        return []
    between = f"the warmup ends anywhere from step {ramp.first:,.0f} to {ramp.last:,.0f}, between two logged rates"
    remedy = ("A recommendation for a short run may depend on it: pass ", Arg("warmup_steps"), ".")
    return [(f"{between}, and {ramp.end:,.0f} steps are assumed. ", *remedy)]


def _sum_of_rates(knots: Array, rates: Array) -> float:
    return float(np.diff(knots) @ (rates[1:] + rates[:-1])) / 2 + float(rates[0] * knots[0])


def _gaps(knots: Array, rates: Array, total_steps: int, num_logged: int) -> list[Words]:
    """A warning about changes between logged rates, if the sum of all rates may be off by more than 1 %.

    The first ``num_logged`` segments have none.
    """
    inside = uncertain_areas(knots, rates)[: np.searchsorted(knots, total_steps)]
    inside[:num_logged] = 0.0
    total = _sum_of_rates(knots, rates)
    if inside.sum() <= TOLERANCE * total:
        return []
    worst = int(np.argmax(inside))
    ends = [f"{knots[place]:,.0f} ({rates[place]:.3g})" for place in (worst, worst + 1)]
    problem = (
        f"the learning rate is logged too rarely: between step {ends[0]} and {ends[1]} it may have changed anywhere, "
        f"and the sum of the rates may be off by {inside.sum() / total:.1%}. "
    )
    return [(problem, *WHOLE_SCHEDULE)]


def uncertain_areas(knots: Array, rates: Array) -> Array:
    r"""How far the sum of the rates may be off between each two logged rates.

    Let s be the slope of a segment of length g, and l and r those of its neighbours. If s is between l and r, the rate
    bends one way, and it lies between the segment and the two neighbours' lines, which meet above or below it. This
    triangle has the area

    .. math:: \frac{g^2}{2}\,\frac{|s-l|\,|s-r|}{|s-l|+|s-r|}.

    Otherwise the rate may jump at any step of the segment, and the area is :math:`g^2 \min(|s-l|, |s-r|) / 2`.
    A segment at an end is compared with the next two.

    >>> uncertain_areas(np.array([0.0, 10, 20, 30]), np.array([1.0, 1, 0, 0]))
    array([0., 5., 0.])
    """
    gaps = np.diff(knots)
    slopes = np.diff(rates) / gaps
    if len(slopes) < 2:
        return np.zeros(len(slopes))
    count = min(len(slopes) - 1, 2)
    left = slopes - np.append(slopes[count], slopes[:-1])
    right = slopes - np.append(slopes[1:], slopes[-1 - count])
    sizes = np.abs(left) + np.abs(right)
    bend = np.abs(left * right) / np.where(sizes > 0, sizes, 1.0)
    return np.asarray(gaps**2 / 2 * np.where(left * right < 0, bend, np.minimum(np.abs(left), np.abs(right))))


def _end(knots: Array, rates: Array, total_steps: int) -> tuple[list[Point], list[Words]]:
    """A step and rate after the last logged rate, and a warning about it."""
    last, open_steps = float(total_steps - 1), float(total_steps - 1 - knots[-1])
    if open_steps <= 0:
        return [], []
    if (value := _continued(knots, rates, last)) is not None:
        return [(last, value)], []
    held = [(last, float(rates[-1]))]
    if open_steps <= TOLERANCE * total_steps or (len(rates) > 1 and rates[-1] == rates[-2]):
        return held, []
    unlogged = f"no learning rate is logged after step {knots[-1]:,.0f}, but losses up to step {total_steps:,}"
    return held, [(f"{unlogged}; {rates[-1]:g} is assumed there. ", *WHOLE_SCHEDULE)]


def _continued(knots: Array, rates: Array, last: float) -> float | None:
    """The rate at step ``last`` on the line through the last two rates, if it is near and the line is steady."""
    if len(rates) < 3 or last - knots[-1] > knots[-1] - knots[-2]:
        return None
    before, slope = np.diff(rates[-3:]) / np.diff(knots[-3:])
    if abs(slope - before) > SIMILAR_SLOPES * max(abs(slope), abs(before)):
        return None
    return max(0.0, float(rates[-1] + slope * (last - knots[-1])))
