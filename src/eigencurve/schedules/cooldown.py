"""Decisions during a run: when the rate starts to decay, and what follows a schedule that has ended."""

from __future__ import annotations

import warnings

from eigencurve import _check
from eigencurve._check import Arg
from eigencurve.schedules.base import Schedule, require_schedule
from eigencurve.schedules.compose import Part, join
from eigencurve.schedules.decays import TAILS, constant, tail_of
from eigencurve.schedules.eigencurve import eigencurve
from eigencurve.schedules.piecewise import piecewise
from eigencurve.schedules.sampling import sampled_steps
from eigencurve.schedules.units import Steps, whole_steps
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum

SHAPES = (*TAILS, "eigencurve")
# A schedule counts as decayed below this fraction of its peak, and a rate jumps if it rises by more than the inverse.
DECAYED = 0.5
NUM_SAMPLED = 1000


def cooldown(
    schedule: Schedule,
    from_step: int,
    num_steps: Steps,
    shape: str = "linear",
    min_lr: float | None = None,
    spectrum: Spectrum | PowerLaw | None = None,
) -> Schedule:
    r"""The same schedule before ``from_step``, followed by a decay over ``num_steps`` steps.

    .. math:: \eta_t = f(t) \text{ for } t < s, \qquad \eta_t = f(s)\, w\bigl((t - s)/n\bigr) \text{ after}

    The decay begins at the rate that the schedule has at ``from_step``, so nothing jumps. The schedule may be shorter
    than ``from_step``: beyond its last step it keeps its last rate.

    Args:
        schedule: Schedule f of the run so far, such as ``constant`` or ``wsd``.
        from_step: First step s of the decay.
        num_steps: Number of steps n of the decay. The result has s + n steps.
        shape: Shape of the decay: ``"linear"``, ``"1-sqrt"``, ``"cosine"`` and the others of :func:`wsd`, or
            ``"eigencurve"``.
        min_lr: Rate at which the decay ends. By default 0; for ``"eigencurve"``, the curve is not rescaled.
        spectrum: Prepared spectrum, for ``"eigencurve"`` only.

    >>> from eigencurve.schedules.decays import constant
    >>> cooldown(constant(1000, lr=1.0), from_step=4, num_steps=4).values()
    array([1.  , 1.  , 1.  , 1.  , 1.  , 0.75, 0.5 , 0.25])
    """
    follow = require_schedule("cooldown", schedule)
    start = _check.whole("cooldown", "from_step", from_step, minimum=0)
    length = whole_steps("cooldown", "num_steps", num_steps, minimum=1)
    rate = follow(start)
    if rate == 0:
        remedy = "Re-warm it first: extend(schedule, total_steps, rewarm=...)."
        _check.refuse("cooldown", "schedule", f"one whose rate at step {start} is > 0", rate, remedy)
    tail = _tail(shape, length, rate, min_lr, spectrum)
    return join([Part(follow, 0, start), tail]) if start else tail


def extend(schedule: Schedule, total_steps: Steps, rewarm: Steps | None = None, lr: float | None = None) -> Schedule:
    """The same schedule, followed by more steps at a constant rate.

    Without ``rewarm`` the added steps keep the schedule's last rate. If the schedule has decayed, that rate is too low
    to learn much, so a warning names the remedy: ``rewarm`` steps in which the rate rises linearly to ``lr``. To decay
    again at the end, pass the result to :func:`cooldown`.

    Args:
        schedule: Schedule of the run so far.
        total_steps: New total number of steps, including those of ``schedule``.
        rewarm: Number of steps of the new rise; it is part of ``total_steps``.
        lr: Rate after the rise; by default the peak of ``schedule``.

    Warns:
        UserWarning: The schedule has decayed and ``rewarm`` is not given.

    >>> from eigencurve.schedules.decays import constant, linear
    >>> extend(constant(2, lr=1.0), 4).values()
    array([1., 1., 1., 1.])
    >>> extend(linear(4, lr=1.0), 8, rewarm=2).values()
    array([1.  , 0.75, 0.5 , 0.25, 0.5 , 0.75, 1.  , 1.  ])
    """
    follow = require_schedule("extend", schedule)
    total = whole_steps("extend", "total_steps", total_steps, minimum=1)
    added = total - follow.total_steps
    if added < 1:
        _check.refuse("extend", "total_steps", f"> {follow.total_steps}, the steps of the schedule", total)
    last = follow(follow.total_steps - 1)
    if rewarm is None:
        if lr is not None:
            need = ("left out without ", Arg("rewarm"))
            _check.refuse("extend", "lr", need, lr, "Pass the number of steps of the rise.")
        return _held(follow, added, last)
    rise = whole_steps("extend", "rewarm", rewarm, 1, total)
    if rise >= added:
        _check.refuse("extend", "rewarm", f"< {added}, the steps that are added", rise)
    top = _check.positive("extend", "lr", _peak(follow, follow.total_steps) if lr is None else lr)
    return join([follow, _ramp(last, top, rise), constant(added - rise, top)])


def spliced(function: str, old: Schedule, new: Schedule, step: int, rewarm: int | None) -> Schedule:
    """Schedule of a run that follows ``old`` before ``step`` and ``new`` from there.

    Args:
        function: Function name for warnings and errors.
        old: Schedule of the run so far.
        new: Schedule to continue with; it is evaluated at the run's own steps.
        step: First step that follows ``new``.
        rewarm: Number of steps in which the rate goes linearly from the old one to the new one; None for an immediate
            change, with a warning if the rate jumps up from a decayed one.
    """
    if new.total_steps <= step:
        _check.refuse(function, "schedule", f"longer than the {step} steps already taken", new.total_steps)
    before, after = old(step), new(step)
    if rewarm is None:
        peak = _peak(old, step + 1)
        if before < DECAYED * peak and after * DECAYED > before:
            share, some = before / peak, max(1, (new.total_steps - step) // 100)
            warnings.warn(
                f"{function}: the rate jumps from {before:.3g} to {after:.3g} at step {step}, because the old schedule "
                f"has decayed to {share:.2g} of its peak. A jump can undo the progress of the decay. To rise over some "
                f"steps instead, pass rewarm={some}, for example, when you extend the scheduler.",
                stacklevel=4,
            )
        return new
    rise = _check.whole(function, "rewarm", rewarm, minimum=1)
    if step + rise >= new.total_steps:
        _check.refuse(function, "rewarm", f"< {new.total_steps - step}, the steps that are left", rise)
    head = [Part(old, 0, step)] if step else []
    rest = Part(new, step + rise, new.total_steps - step - rise)
    return join([*head, _ramp(before, new(step + rise), rise), rest])


def _tail(shape: str, length: int, rate: float, min_lr: float | None, spectrum: Spectrum | PowerLaw | None) -> Schedule:
    _check.choice("cooldown", "shape", shape, SHAPES)
    if shape == "eigencurve":
        if spectrum is None:
            remedy = "Pass a prepared spectrum or a PowerLaw."
            _check.refuse("cooldown", "spectrum", ("given if ", Arg("shape"), " is 'eigencurve'"), None, remedy)
        return eigencurve(spectrum, length, rate, min_lr)
    if spectrum is not None:
        _check.refuse("cooldown", "spectrum", ("left out if ", Arg("shape"), f" is {shape!r}"), spectrum)
    return tail_of("cooldown", "shape", shape, length, rate, 0.0 if min_lr is None else min_lr)


def _held(schedule: Schedule, added: int, last: float) -> Schedule:
    peak = _peak(schedule, schedule.total_steps)
    if last < DECAYED * peak:
        share, some = last / peak, max(1, added // 100)
        warnings.warn(
            f"extend: the schedule has decayed to {last:.3g}, {share:.2g} of its peak, and the {added} added steps "
            f"keep this rate. Pass rewarm={some}, for example, to rise again to {peak:g} over that many steps ('lr' "
            "sets another rate), or extend a checkpoint from before the decay.",
            stacklevel=3,
        )
    return Part(schedule, 0, schedule.total_steps + added)


def _peak(schedule: Schedule, num_steps: int) -> float:
    """The largest rate of the first ``num_steps`` steps, at up to two thousand of them."""
    return float(schedule(sampled_steps(num_steps, NUM_SAMPLED)).max())


def _ramp(start: float, end: float, num_steps: int) -> Schedule:
    """From ``start``, excluded, to ``end``, excluded, in equal steps."""
    return piecewise(num_steps, [0, num_steps], [start + (end - start) / (num_steps + 1), end])
