"""Lemma 1's schedule for any interval lengths, and the library's lengths."""

import math

import numpy as np

from eigencurve.schedules.allocation import optimal_allocation, sqrt_allocation
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.spectrum import group


def interval_lengths(spectrum, total_steps, allocation="optimal", beta=2.0):
    groups = group(spectrum, beta)
    if allocation == "sqrt":
        return sqrt_allocation(groups.share, total_steps)
    return optimal_allocation(groups.share, groups.lower / spectrum.L, total_steps)


def schedule_for(spectrum, lengths, beta=2.0):
    """The schedule with initial rate 1/L; a length below the rounding error of T gets no interval."""
    slope = group(spectrum, beta).lower / spectrum.L
    total = round(math.fsum(lengths))
    times = np.minimum(np.concatenate(([0.0], np.cumsum(lengths))), total)
    heights = 1 + np.concatenate(([0.0], np.cumsum(lengths * slope)))
    inner = np.concatenate((np.diff(times) > 0, [False])) & (times < total)
    return Eigencurve(total, 1 / spectrum.L, np.append(times[inner], total), np.append(heights[inner], heights[-1]))
