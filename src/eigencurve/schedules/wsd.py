"""Warmup, stable, decay: a rate that stays high for most of the run and falls at its end, once or several times."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from eigencurve import _check
from eigencurve._check import Arg
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import join, warmup
from eigencurve.schedules.decays import constant, tail_of
from eigencurve.schedules.units import Steps, fraction, nearest_step, whole_steps

# The usual share of the decay, of the whole run or of each cycle.
USUAL_DECAY = 0.2
USUAL_CYCLES = 3


def wsd(
    total_steps: Steps,
    lr: float,
    decay_steps: Steps | None = None,
    warmup_steps: Steps = 0,
    min_lr: float = 0.0,
    *,
    decay: float | None = None,
    tail: str = "linear",
) -> Schedule:
    """Warmup, stable, decay: a linear warmup, a constant rate, and a decay at the end of the run.

    It is composed of :func:`warmup`, :func:`constant` and the decay; ``total_steps`` includes all three.

    Args:
        total_steps: Total number of steps T, including the warmup.
        lr: Rate of the stable part.
        decay_steps: Length of the decay. Pass this or ``decay``.
        warmup_steps: Length of the warmup.
        min_lr: Rate at which the decay ends.
        decay: Length of the decay as a fraction of the run, at least one step; 0.2 by default.
        tail: Shape of the decay, with x from 0 to 1: ``"linear"`` (1 - x), ``"1-sqrt"`` (1 - √x), ``"cosine"``,
            ``"1-square"`` (1 - x²), ``"sqrt"`` (√(1 - x)), ``"square"`` ((1 - x)²), ``"exponential"`` or ``"inverse"``.
            The last two need ``min_lr`` above 0.

    Raises:
        ValueError: Warmup and decay together are longer than the run.

    Reference: Hu et al., 2024, arXiv:2404.06395; for the shapes, Hägele et al., 2024, arXiv:2405.18392.

    >>> wsd(6, lr=1.0, decay_steps=2, warmup_steps=1).values()
    array([0.5, 1. , 1. , 1. , 1. , 0.5])
    >>> wsd(10, lr=1.0, decay=0.4, tail="1-sqrt").values().round(2)
    array([1.  , 1.  , 1.  , 1.  , 1.  , 1.  , 1.  , 0.5 , 0.29, 0.13])
    """
    total = whole_steps("wsd", "total_steps", total_steps, minimum=1)
    if decay_steps is not None and decay is not None:
        limit = ("left out if ", Arg("decay_steps"), " is given")
        _check.refuse("wsd", "decay", limit, decay, "Pass one of the two.")
    fall = (
        _share("wsd", decay, total) if decay_steps is None else whole_steps("wsd", "decay_steps", decay_steps, 1, total)
    )
    rise = whole_steps("wsd", "warmup_steps", warmup_steps, 0, total)
    if fall + rise > total:
        most = ("<= ", Arg("total_steps"), " - ", Arg("warmup_steps"), f" = {total - rise}")
        remedy = (Arg("total_steps"), f" includes the warmup and the decay: at most {total - rise} steps are left.")
        _check.refuse("wsd", "decay_steps", most, fall, remedy)
    parts = _cycle("wsd", total - rise, fall, lr, min_lr, tail)
    body = join(parts) if len(parts) > 1 else parts[0]
    return warmup(body, rise) if rise else body


def wsd_cycles(
    total_steps: Steps,
    lr: float,
    num_cycles: int | None = None,
    min_lr: float = 0.0,
    *,
    ends: Sequence[Steps] | None = None,
    decay: float = USUAL_DECAY,
    tail: str = "linear",
    warmup_steps: Steps = 0,
) -> Schedule:
    """WSD-S: several cycles of a constant rate and a decay, each of which continues from the decayed weights.

    After each decay the rate returns to ``lr`` at once. The weights at the end of each cycle are those of a finished
    run, so one run gives a usable model at several budgets.

    Args:
        total_steps: Total number of steps T.
        lr: Rate of the stable parts.
        num_cycles: Number of cycles of equal length; 3 by default. Pass this or ``ends``.
        min_lr: Rate at which each decay ends.
        ends: Steps at which the cycles end, in increasing order; T is added as the last one if it is missing.
        decay: Length of each decay as a fraction of its cycle, at least one step.
        tail: Shape of each decay; see :func:`wsd`. The paper uses ``"inverse"``.
        warmup_steps: Length of the warmup, which is part of the first cycle.

    Reference: Wen et al., 2024, arXiv:2410.05192.

    >>> wsd_cycles(8, lr=1.0, num_cycles=2, decay=0.5).values()
    array([1. , 1. , 1. , 0.5, 1. , 1. , 1. , 0.5])
    """
    total = whole_steps("wsd_cycles", "total_steps", total_steps, minimum=1)
    rise = whole_steps("wsd_cycles", "warmup_steps", warmup_steps, 0, total)
    lengths = [later - earlier for earlier, later in pairwise([0, *_ends(total, num_cycles, ends)])]
    falls = [_share("wsd_cycles", decay, length) for length in lengths]
    if rise + falls[0] > lengths[0]:
        need = f"<= {lengths[0] - falls[0]}, the first cycle without its decay"
        _check.refuse("wsd_cycles", "warmup_steps", need, rise)
    lengths[0] -= rise
    cycles = zip(lengths, falls, strict=True)
    body = join([part for length, fall in cycles for part in _cycle("wsd_cycles", length, fall, lr, min_lr, tail)])
    return warmup(body, rise) if rise else body


def _share(function: str, decay: float | None, length: int) -> int:
    part = _check.positive(function, "decay", USUAL_DECAY if decay is None else decay)
    if part > 1:
        _check.refuse(function, "decay", "<= 1", part, "It is a fraction: 20 % is 0.2.")
    return max(1, nearest_step(fraction(part).exact_steps(length)))


def _cycle(function: str, length: int, fall: int, lr: float, min_lr: float, tail: str) -> list[Schedule]:
    """A constant rate, if there are steps for it, and then ``fall`` steps of decay."""
    end = tail_of(function, "tail", tail, fall, _check.positive(function, "lr", lr), min_lr)
    return [constant(length - fall, lr), end] if length > fall else [end]


def _ends(total: int, num_cycles: int | None, ends: Sequence[Steps] | None) -> list[int]:
    if ends is None:
        usual = min(USUAL_CYCLES, total)
        count = _check.whole("wsd_cycles", "num_cycles", usual if num_cycles is None else num_cycles, minimum=1)
        if count > total:
            _check.refuse("wsd_cycles", "num_cycles", f"<= total_steps = {total}", count)
        return [total * (k + 1) // count for k in range(count)]
    if num_cycles is not None:
        _check.refuse(
            "wsd_cycles", "num_cycles", ("left out if ", Arg("ends"), " is given"), num_cycles, "Pass one of the two."
        )
    steps = [whole_steps("wsd_cycles", "ends", end, 1, total) for end in ends]
    if any(later <= earlier for earlier, later in pairwise(steps)) or (steps and steps[-1] > total):
        _check.refuse("wsd_cycles", "ends", f"strictly increasing, up to total_steps = {total}", steps)
    return steps if steps and steps[-1] == total else [*steps, total]
