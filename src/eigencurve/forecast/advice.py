"""Warnings about questions that the logged runs leave open, and the short additional run that would help most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eigencurve._arrays import Array
from eigencurve.forecast.fitted import FittedRuns
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import after_warmup, join
from eigencurve.schedules.decays import constant, cosine, linear
from eigencurve.schedules.wsd import wsd

# The effect of a decay is unknown if its standard deviation exceeds this fraction of it.
UNKNOWN = 0.5
# Runs at several peak rates do not follow one model if its error exceeds those of single rates by this factor.
WORSE = 2.0
# An additional run counts as this many independent losses, each with the standard deviation of the model's error.
NEW_POINTS = 10


@dataclass(frozen=True, eq=False)
class NextRun:
    """A short additional run.

    Attributes:
        schedule: Its whole schedule.
        branch_step: Step of the checkpoint that it starts from; 0 for a new run.
        num_steps: Number of steps to train from there.
        reason: What to do, in one sentence.
        narrower: Factor by which it would shrink the standard deviation of a forecast, on average.
    """

    schedule: Schedule
    branch_step: int
    num_steps: int
    reason: str
    narrower: float


def fit_warnings(fitted: FittedRuns, at_one_peak: Sequence[FittedRuns], usual: FittedRuns) -> tuple[str, ...]:
    """Questions that the logged runs leave open, one sentence each.

    Args:
        fitted: The fit to all runs.
        at_one_peak: Fits to the runs at one peak rate each.
        usual: The fit that forecasts schedules with the highest logged peak rate.
    """
    logged, sentences = usual.logged, []
    if math.isinf(logged.decay):
        sentences.append("No logged run lowers its rate, so the runs contain no information about decay.")
    elif _decay_error(usual) > UNKNOWN:
        sentences.append("The runs hardly determine how much a decay lowers the loss.")
    if math.isfinite(logged.decay) and not logged.has_contrast:
        sentences.append(
            f"No two runs at the peak rate {logged.highest_peak:.3g} decay differently, so forecasts of other shapes"
            " may be off by more than their intervals. Log a run with another shape there, such as a constant rate."
        )
    if logged.lowest_rate > 0.5:
        sentences.append(
            "No logged rate falls below half the peak, so losses near the end of a decay are extrapolated."
        )
    alone = max((fit.misfit for fit in at_one_peak), default=math.inf)
    if fitted.misfit >= WORSE * alone:
        sentences.append(
            f"The runs at different peak rates do not follow one model: its error is {fitted.misfit:.3g}, and at most"
            f" {alone:.3g} for the runs at one rate. Do not use forecasts for peak rates that you have not logged."
        )
    return tuple(sentences)


def next_run(fitted: FittedRuns, total_steps: int) -> NextRun:
    """The candidate that narrows the forecasts of the usual schedules for T steps most."""
    place = fitted.members.index(fitted.likeliest)
    covariance = fitted.likeliest.covariance
    targets = np.vstack([fitted.forecast(schedule).slopes[place] for schedule in _targets(fitted, total_steps)])
    before = _deviation(targets, covariance, fitted.misfit)

    runs = []
    for schedule, branch, reason in _candidates(fitted):
        marks = np.unique(np.linspace(branch, schedule.total_steps, NEW_POINTS + 1)[1:].round().astype(np.int64))
        rows = fitted.forecast(schedule, marks).slopes[place]
        after = _deviation(targets, _updated(covariance, rows, fitted.misfit), fitted.misfit)
        runs.append(NextRun(schedule, branch, schedule.total_steps - branch, reason, after / before))
    return min(runs, key=lambda run: run.narrower)


def _candidates(fitted: FittedRuns) -> list[tuple[Schedule, int, str]]:
    """Short runs from a checkpoint at the end of a constant rate: schedule, branch step, and what to do.

    If no logged run has such a checkpoint, they begin at step 0.
    """
    branch, peak, rise = fitted.logged.num_steps, fitted.logged.highest_peak, fitted.logged.warmup_steps
    short, long = max(branch // 10, 1), max(branch // 2, 1)
    hold = after_warmup(constant(max(branch - rise, 1), peak), rise)
    held = hold.total_steps
    start, where = 0, f"Hold the peak rate for {held:,} steps,"
    further = f"Hold the peak rate for {held + long:,} steps."
    if math.isinf(fitted.logged.slowest_decay):
        start, where = held, f"Branch off a checkpoint that still has the peak rate, at about step {held:,},"
        further = f"Continue a run at the peak rate for {long:,} steps."
    return [
        (join([hold, linear(short, peak)]), start, f"{where} and decay linearly to 0 over {short:,} steps."),
        (join([hold, constant(short, 0.3 * peak)]), start, f"{where} and hold 30 % of the rate for {short:,} steps."),
        (join([hold, constant(long, peak)]), start, further),
    ]


def _targets(fitted: FittedRuns, total_steps: int) -> list[Schedule]:
    """The schedules that people ask for."""
    rise = min(fitted.logged.warmup_steps, total_steps // 2)
    steps, peak = total_steps - rise, fitted.logged.highest_peak
    tail = max(steps // 5, 1)
    return [after_warmup(f, rise) for f in (cosine(steps, peak), linear(steps, peak), wsd(steps, peak, tail))]


def _decay_error(fitted: FittedRuns) -> float:
    """The standard deviation of what a decay gains, relative to the gain."""
    steps, peak = fitted.logged.num_steps, fitted.logged.highest_peak
    held, decayed = constant(steps, peak), wsd(steps, peak, max(steps // 5, 1))
    gain, variance = fitted.forecast(held).minus(fitted.forecast(decayed))
    return math.sqrt(variance) / abs(gain) if gain else math.inf


def _deviation(slopes: Array, covariance: Array, misfit: float) -> float:
    """The standard deviation of the losses with these slopes, on average."""
    variances = np.einsum("ij,jk,ik->i", slopes, covariance, slopes) + misfit**2
    return float(np.sqrt(variances).mean())


def _updated(covariance: Array, rows: Array, misfit: float) -> Array:
    """The covariance after new losses with slopes ``rows`` and standard deviation ``misfit`` (a Kalman update)."""
    gain = covariance @ rows.T
    return covariance - gain @ np.linalg.solve(rows @ gain + misfit**2 * np.eye(len(rows)), gain.T)
