"""Staircases: schedules whose rate is constant on pieces and falls at the start of each."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Decay
from eigencurve.schedules.units import Steps, whole_steps

# A step this close to the start of the next interval, relative to the remaining steps, belongs to that interval.
EDGE_TOLERANCE = 1e-12


class Staircase(Decay):
    """A rate that is divided by the same factor at the start of every piece but the first."""

    decay_factor: float

    def _settle(self, **checked: Any) -> None:
        factor = _check.at_least(self.kind, "factor", self.decay_factor, 1.0)
        super()._settle(decay_factor=factor, **checked)

    def _rates(self, steps: IntArray) -> Array:
        with np.errstate(over="ignore"):  # below the smallest float the rate is 0
            return self.lr / np.float_power(self.decay_factor, self._piece(steps))

    @abstractmethod
    def _piece(self, steps: IntArray) -> IntArray: ...


@dataclass(frozen=True, eq=False)
class StepDecay(Staircase):
    """See :func:`step_decay`."""

    kind: ClassVar[str] = "step_decay"
    num_intervals: int
    decay_factor: float = 2.0

    def __post_init__(self) -> None:
        self._settle(num_intervals=_check.whole(self.kind, "num_intervals", self.num_intervals, minimum=1))
        most = _check.MOST_WHOLE // self.total_steps
        if self.num_intervals > most:
            need = f"<= {most} for total_steps = {self.total_steps}"
            _check.refuse(self.kind, "num_intervals", need, self.num_intervals)

    def _piece(self, steps: IntArray) -> IntArray:
        return steps * self.num_intervals // self.total_steps


def step_decay(total_steps: Steps, lr: float, num_intervals: int | None = None, factor: float = 2.0) -> StepDecay:
    r"""Step decay: K intervals of equal length, with the rate divided by ``factor`` after each.

    .. math:: \eta_t = \eta_0 / \gamma^k \quad\text{if}\quad t \in [k, k+1)\cdot T/K

    Args:
        total_steps: Total number of steps T.
        lr: Initial rate.
        num_intervals: Number of intervals K; None for the floor of log2 T (at least 1), as in Ge et al.
        factor: Factor γ between the rates of two intervals, at least 1.

    Reference: Ge et al., 2019, arXiv:1904.12838, Algorithm 1; arXiv:2110.14109, Table "Hyperparameter search".

    >>> step_decay(8, lr=0.8).values()
    array([0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2])
    """
    total = whole_steps("step_decay", "total_steps", total_steps, minimum=1)
    return StepDecay(total, lr, max(1, total.bit_length() - 1) if num_intervals is None else num_intervals, factor)


@dataclass(frozen=True, eq=False)
class MultiStep(Staircase):
    """See :func:`multistep`."""

    kind: ClassVar[str] = "multistep"
    milestones: tuple[int, ...]
    decay_factor: float = 10.0

    def __post_init__(self) -> None:
        self._settle(milestones=_increasing(self.milestones, self.total_steps))

    def _piece(self, steps: IntArray) -> IntArray:
        return np.searchsorted(self.milestones, steps, side="right")


def multistep(total_steps: Steps, lr: float, milestones: Sequence[Steps], factor: float = 10.0) -> MultiStep:
    r"""The rate divided by ``factor`` at each milestone: :math:`\eta_t = \eta_0/\gamma^{\#\{m \le t\}}`.

    Args:
        total_steps: Total number of steps T.
        lr: Initial rate.
        milestones: Steps from 1 to T-1, in increasing order. The lower rate starts at the milestone itself.
        factor: Factor γ between the rates of two intervals, at least 1.

    >>> multistep(90, lr=1.0, milestones=[30, 60])(60)
    0.01
    """
    total = whole_steps("multistep", "total_steps", total_steps, minimum=1)
    return MultiStep(total, lr, tuple(whole_steps("multistep", "milestones", m, 1, total) for m in milestones), factor)


@dataclass(frozen=True, eq=False)
class HoldThenDecay(Staircase):
    """See :func:`hold_then_decay`."""

    kind: ClassVar[str] = "hold_then_decay"
    hold: int
    every: int
    decay_factor: float

    def __post_init__(self) -> None:
        self._settle(
            hold=_check.whole(self.kind, "hold", self.hold, minimum=0),
            every=_check.whole(self.kind, "every", self.every, minimum=1),
        )

    def _piece(self, steps: IntArray) -> IntArray:
        return np.maximum(0, (steps - self.hold) // self.every + 1)


def hold_then_decay(total_steps: Steps, lr: float, hold: Steps, every: Steps, factor: float) -> HoldThenDecay:
    r"""A constant rate for ``hold`` steps, then divided by ``factor`` once every ``every`` steps.

    .. math:: \eta_t = \eta_0 \text{ for } t < h, \qquad
              \eta_t = \eta_0/\gamma^k, \; k = 1 + \lfloor (t-h)/e \rfloor \text{ after}

    With h = 14 epochs, e = 1 epoch and γ = 1.15 it is the baseline of the paper's language model.

    Reference: Zaremba et al., 2015, arXiv:1409.2329; arXiv:2110.14109, Table "Hyperparameter search".

    >>> hold_then_decay(6, lr=1.0, hold=2, every=2, factor=2.0).values()
    array([1.  , 1.  , 0.5 , 0.5 , 0.25, 0.25])
    """
    total = whole_steps("hold_then_decay", "total_steps", total_steps, minimum=1)
    held = whole_steps("hold_then_decay", "hold", hold, 0, total)
    return HoldThenDecay(total, lr, held, whole_steps("hold_then_decay", "every", every, 1, total), factor)


@dataclass(frozen=True, eq=False)
class ElasticStep(Decay):
    """See :func:`elastic_step`."""

    kind: ClassVar[str] = "elastic_step"
    r: float = 0.5

    def __post_init__(self) -> None:
        ratio = _check.real(self.kind, "r", self.r)
        if not 0 < ratio < 1:
            _check.refuse(self.kind, "r", "between 0 and 1, both excluded", ratio, "The paper uses 1/2 and 1/sqrt(2).")
        self._settle(r=ratio)

    def _rates(self, steps: IntArray) -> Array:
        return self.lr * 2.0 ** -self._piece(steps).astype(np.float64)

    def _piece(self, steps: IntArray) -> IntArray:
        left = (self.total_steps - steps) / self.total_steps
        return np.floor((np.log(left) - EDGE_TOLERANCE) / math.log(self.r)).astype(np.int64)


def elastic_step(total_steps: Steps, lr: float, r: float = 0.5) -> ElasticStep:
    r"""Elastic Step Decay: the rate is halved each time the number of remaining steps has shrunk by the factor r.

    .. math:: \eta_t = \eta_0 / 2^k \quad\text{if}\quad t \in \bigl[(1-r^k)T, (1-r^{k+1})T\bigr)

    Args:
        total_steps: Total number of steps T.
        lr: Initial rate.
        r: Ratio of the lengths of successive intervals, between 0 and 1. The paper searches 1/2 and 1/√2 for images
            and values up to 2^(-1/20) for language.

    Reference: arXiv:2110.14109, Section 4.3 and Appendix "ImageNet Classification with Elastic Step Decay".

    >>> elastic_step(8, lr=1.0, r=0.5).values()
    array([1.   , 1.   , 1.   , 1.   , 0.5  , 0.5  , 0.25 , 0.125])
    """
    return ElasticStep(whole_steps("elastic_step", "total_steps", total_steps, minimum=1), lr, r)


def _increasing(milestones: Sequence[int], total_steps: int) -> tuple[int, ...]:
    steps = tuple(_check.whole("multistep", "milestones", m, minimum=1) for m in milestones)
    if any(later <= earlier for earlier, later in pairwise(steps)):
        _check.refuse("multistep", "milestones", "strictly increasing", steps, "Sort them.")
    if steps and steps[-1] >= total_steps:
        remedy = "Milestones are steps, not epochs, and the last one must be within the run."
        _check.refuse("multistep", "milestones", f"below total_steps = {total_steps}", steps[-1], remedy)
    return steps
