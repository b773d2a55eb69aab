"""The intervals of an Eigencurve schedule and the eigenvalues each one serves."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.spectrum.groups import group, octave_index
from eigencurve.spectrum.source import SpectrumSource

# A schedule with more intervals than this is summed up by octaves.
MOST_INTERVALS = 32


@dataclass(frozen=True)
class Interval:
    """Part of the schedule that serves the eigenvalues between two edges.

    Attributes:
        lower, upper: Edges of the eigenvalues.
        share: Share of all eigenvalues.
        start, length: First step and number of steps, not rounded to whole steps.
        first_lr, last_lr: Learning rate at the first and last step.
    """

    lower: float
    upper: float
    share: float
    start: float
    length: float
    first_lr: float
    last_lr: float


def intervals_of(curve: Eigencurve, subject: SpectrumSource, beta: float) -> tuple[Interval, ...]:
    """List the intervals of ``curve`` with their groups of eigenvalues; if there are too many, by octaves.

    Within an interval the denominator grows by λ/L per step, where λ is the lower edge of its group. The slope
    therefore identifies the group.

    Args:
        curve: Schedule for the subject's spectrum.
        subject: Spectrum that the schedule was built from.
        beta: Ratio of group edges that the schedule was built with.
    """
    spectrum = subject.spectrum
    lengths = np.diff(curve.times)
    lam = np.diff(curve.denominators) / lengths * spectrum.L
    ratio = beta if beta > 1 and len(lengths) <= MOST_INTERVALS else 2.0
    used, first = np.unique(octave_index(lam * ratio**1e-6, spectrum.mu, ratio), return_index=True)
    starts = curve.times[first]
    ends = np.append(starts[1:], curve.total_steps)
    groups = group(subject.prepared, ratio)
    share = dict(zip(groups.index.tolist(), groups.share.tolist(), strict=True))
    return tuple(
        Interval(
            lower=spectrum.mu * ratio**i,
            upper=min(spectrum.mu * ratio ** (i + 1), spectrum.L),
            share=share.get(i, 0.0),
            start=start,
            length=end - start,
            first_lr=curve(math.ceil(start)),
            last_lr=curve(max(math.ceil(end) - 1, 0)),
        )
        for i, start, end in zip(used.tolist(), starts.tolist(), ends.tolist(), strict=True)
    )
