"""Where the linear warmup of a run ends, from learning rates that are logged every few steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eigencurve._arrays import Array

# Slopes of a straight ramp differ by less than this fraction; logged rates are rounded.
STRAIGHT = 0.01
# A peak that is this much above the last rate of the ramp is not on it.
ABOVE = 1e-3
# A warmup has a whole number of steps; a crossing of two lines is this close to one.
WHOLE = 0.02


@dataclass(frozen=True)
class Ramp:
    """The end of a warmup that lies between two logged rates.

    Attributes:
        end: Step at which the rate reaches its peak.
        rate: Rate there.
        first: Earliest step at which it may do so.
        last: Latest such step.
        before: Number of logged rates before ``end``.
    """

    end: float
    rate: float
    first: float
    last: float
    before: int


def ramp_of(knots: Array, rates: Array, warmup_steps: int | None = None) -> Ramp | None:
    r"""The end of the warmup, or None if it is logged, or if the first rates do not rise on a straight line.

    The warmup ends where the line through the last two rates of the ramp crosses that through the two rates after it:

    .. math:: r_b + s\,(t - k_b) = r_p + d\,(t - k_p)

    If only one rate of the ramp is logged, its line begins at a rate of 0 at step 0, as in PyTorch and transformers, or
    one step before, as in :func:`eigencurve.warmup`; the one whose crossing is a whole step is taken. If that rate is
    0, the warmup may end anywhere up to the next row.

    Args:
        knots: Steps of the logged rates.
        rates: The logged rates.
        warmup_steps: Number of steps of the warmup, if it is known.
    """
    top = int(np.argmax(rates >= (1 - ABOVE * ABOVE) * rates.max()))
    if top == 0 or not _straight(knots[:top], rates[:top]):
        return None
    before = top + 1 if _on_ramp(knots, rates, top) else top
    if before >= len(knots) or knots[before] - knots[before - 1] <= 1:
        return None
    if warmup_steps is None:
        return _crossing(knots, rates, before)
    if not knots[before - 1] < warmup_steps < knots[before]:
        return None
    end = float(warmup_steps)
    return Ramp(end, _after(knots, rates, before, end), end, end, before)


def _straight(knots: Array, rates: Array) -> bool:
    """Whether rates rise on one line."""
    slopes = np.diff(rates) / np.diff(knots)
    return bool((slopes > 0).all() and np.ptp(slopes) <= STRAIGHT * slopes.max()) if len(slopes) else True


def _on_ramp(knots: Array, rates: Array, top: int) -> bool:
    """Whether the highest logged rate is on the line through the two before it."""
    if top < 2:
        return False
    slope = (rates[top - 1] - rates[top - 2]) / (knots[top - 1] - knots[top - 2])
    return bool(abs(rates[top - 1] + slope * (knots[top] - knots[top - 1]) - rates[top]) <= ABOVE * rates[top])


def _after(knots: Array, rates: Array, place: int, step: float) -> float:
    """The rate at ``step`` on the line through the two rates from ``place``, or that rate itself.

    A decay that begins slowly, such as a cosine, is below that line. People type round peak rates, so the roundest one
    between the logged rate and the line is taken.
    """
    logged = float(rates[place])
    line = max(logged + _slope_after(knots, rates, place) * (step - float(knots[place])), 0.0)
    return _roundest(logged, line) if logged < line else line


def _roundest(low: float, high: float) -> float:
    """The number from ``low`` to ``high`` with the fewest digits, or ``high`` if six are not enough.

    >>> _roundest(0.009996, 0.0100061)
    0.01
    """
    for digits in range(1, 7):
        scale = 10.0 ** (math.floor(math.log10(high)) - digits + 1)
        number = float(f"{math.floor(high / scale) * scale:.{digits}g}")
        if low <= number:
            return number
    return high


def _slope_after(knots: Array, rates: Array, place: int) -> float:
    """The slope after the warmup; a drop to another rate is none."""
    if place + 1 >= len(knots):
        return 0.0
    slope = float((rates[place + 1] - rates[place]) / (knots[place + 1] - knots[place]))
    return slope if -slope * float(knots[place] - knots[place - 1]) < 0.2 * rates[place] else 0.0


def _crossing(knots: Array, rates: Array, before: int) -> Ramp | None:
    """The crossing of the ramp's line with that of the rates after it, within the step where it must be."""
    base, rate = float(knots[before - 1]), float(rates[before - 1])
    slopes = _ramp_slopes(knots, rates, before)
    if not slopes:
        middle = round((base + float(knots[before])) / 2)
        return Ramp(middle, _after(knots, rates, before, middle), base + 1, float(knots[before]), before)
    flat, place = _slope_after(knots, rates, before), float(knots[before])
    ends = [(rates[before] - flat * place - rate + slope * base) / (slope - flat) for slope in slopes if slope > flat]
    inside: list[float] = [float(end) for end in ends if base - 0.5 <= end <= place + 0.5]
    if not inside:
        return None
    end = float(np.rint(min(inside, key=lambda step: abs(step - float(np.rint(step))) > WHOLE)))
    if not base < end < place:
        return None
    first, last = min(round(min(inside)), end), max(round(max(inside)), end)
    return Ramp(end, _after(knots, rates, before, end), first, last, before)


def _ramp_slopes(knots: Array, rates: Array, before: int) -> list[float]:
    """Possible slopes of the ramp; none if its only logged rate is 0."""
    if before >= 2:
        return [float((rates[before - 1] - rates[before - 2]) / (knots[before - 1] - knots[before - 2]))]
    step, rate = float(knots[0]), float(rates[0])
    if rate == 0:
        return []
    return [rate / (step + 1)] if step == 0 else [rate / step, rate / (step + 1)]
