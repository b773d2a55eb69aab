"""The classic schedules, which are also the baselines of the paper."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Decay, DecayToMinimum
from eigencurve.schedules.practical import half_cosine
from eigencurve.schedules.units import Steps, whole_steps


@dataclass(frozen=True, eq=False)
class Constant(Decay):
    """See :func:`constant`."""

    kind: ClassVar[str] = "constant"

    def _rates(self, steps: IntArray) -> Array:
        return np.full(steps.shape, self.lr)


def constant(total_steps: Steps, lr: float) -> Constant:
    r"""The same learning rate at every step, :math:`\eta_t = \eta_0`.

    >>> constant(100, lr=0.1)(99)
    0.1
    """
    return Constant(whole_steps("constant", "total_steps", total_steps, minimum=1), lr)


@dataclass(frozen=True, eq=False)
class DecayAboveZero(Decay):
    """A schedule that reaches ``min_lr`` exactly at the last step, and would reach 0 only after infinitely many."""

    min_lr: float

    def __post_init__(self) -> None:
        remedy = "This decay never reaches 0: give a small positive rate, or use cosine or linear."
        last = _check.positive(self.kind, "min_lr", self.min_lr, remedy)
        lr = _check.positive(self.kind, "lr", self.lr)
        if lr / np.finfo(np.float64).max > last:
            smallest = f"at least {lr / np.finfo(np.float64).max:.2g} for lr = {lr:g}"
            _check.refuse(self.kind, "min_lr", smallest, last, "float64 cannot hold their ratio.")
        self._settle(min_lr=_check.last_rate(self.kind, last, lr))

    def _progress(self, steps: IntArray) -> Array:
        """0 at the first step and 1 at the last; 0 in a run of one step."""
        return steps / max(1, self.total_steps - 1)


@dataclass(frozen=True, eq=False)
class InverseTime(DecayAboveZero):
    """See :func:`inverse_time`."""

    kind: ClassVar[str] = "inverse_time"

    def _rates(self, steps: IntArray) -> Array:
        return self.lr / (1 + (self.lr / self.min_lr - 1) * self._progress(steps))


def inverse_time(total_steps: Steps, lr: float, min_lr: float) -> InverseTime:
    r"""Inverse time decay.

    .. math:: \eta_t = \frac{\eta_0}{1 + \gamma\eta_0 t}

    γ is chosen so that the last step has the rate :math:`\eta_{T-1}` = ``min_lr``. A run of one step has the rate
    ``lr``.

    Reference: arXiv:2110.14109, Appendix "Ridge Regression".

    >>> f = inverse_time(101, lr=1.0, min_lr=0.01)
    >>> round(f(50), 4), round(f(100), 4)
    (0.0198, 0.01)
    """
    return InverseTime(whole_steps("inverse_time", "total_steps", total_steps, minimum=1), lr, min_lr)


@dataclass(frozen=True, eq=False)
class Exponential(DecayAboveZero):
    """See :func:`exponential`."""

    kind: ClassVar[str] = "exponential"

    def _rates(self, steps: IntArray) -> Array:
        return self.lr * (self.min_lr / self.lr) ** self._progress(steps)


def exponential(total_steps: Steps, lr: float, min_lr: float) -> Exponential:
    r"""Exponential decay, :math:`\eta_t = \gamma^t \eta_0`, to the rate ``min_lr`` at the last step.

    A run of one step has the rate ``lr``.

    Reference: arXiv:2110.14109, Appendix "Ridge Regression".

    >>> round(exponential(101, lr=1.0, min_lr=0.01)(50), 4)
    0.1
    """
    return Exponential(whole_steps("exponential", "total_steps", total_steps, minimum=1), lr, min_lr)


@dataclass(frozen=True, eq=False)
class Cosine(DecayToMinimum):
    """See :func:`cosine`."""

    kind: ClassVar[str] = "cosine"

    def _weight(self, progress: Array) -> Array:
        return half_cosine(progress)


def cosine(total_steps: Steps, lr: float, min_lr: float = 0.0) -> Cosine:
    r"""Cosine decay without restarts.

    .. math:: \eta_t = \eta_{\min} + \tfrac12(\eta_0 - \eta_{\min})\bigl(1 + \cos\tfrac{\pi t}{T}\bigr)

    The formula uses t/T, so the last step's rate is a little above ``min_lr``.

    Reference: Loshchilov and Hutter, 2017, arXiv:1608.03983; the paper's Table "Hyperparameter search".

    >>> cosine(100, lr=0.1)(50)
    0.05
    """
    return Cosine(whole_steps("cosine", "total_steps", total_steps, minimum=1), lr, min_lr)


@dataclass(frozen=True, eq=False)
class Linear(DecayToMinimum):
    """See :func:`linear`."""

    kind: ClassVar[str] = "linear"

    def _weight(self, progress: Array) -> Array:
        return 1 - progress


def linear(total_steps: Steps, lr: float, min_lr: float = 0.0) -> Linear:
    r"""Linear decay.

    .. math:: \eta_t = \eta_{\min} + (\eta_0 - \eta_{\min})(1 - t/T)

    Reference: Defazio et al., 2023, arXiv:2310.07831, who show that it is optimal in the worst case.

    >>> linear(4, lr=1.0).values()
    array([1.  , 0.75, 0.5 , 0.25])
    """
    return Linear(whole_steps("linear", "total_steps", total_steps, minimum=1), lr, min_lr)


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


def _increasing(milestones: Sequence[int], total_steps: int) -> tuple[int, ...]:
    steps = tuple(_check.whole("multistep", "milestones", m, minimum=1) for m in milestones)
    if any(later <= earlier for earlier, later in pairwise(steps)):
        _check.refuse("multistep", "milestones", "strictly increasing", steps, "Sort them.")
    if steps and steps[-1] >= total_steps:
        remedy = "Milestones are steps, not epochs, and the last one must be within the run."
        _check.refuse("multistep", "milestones", f"below total_steps = {total_steps}", steps[-1], remedy)
    return steps
