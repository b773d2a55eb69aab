"""Schedules composed of other schedules: a warmup before one, a part of one, or several in sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Schedule, require_schedule
from eigencurve.schedules.decays import half_cosine
from eigencurve.schedules.units import Length, Steps, whole_steps

# The rate at step t < n of a warmup of n steps to a peak.
RISES: dict[str, Callable[[float, IntArray, int], Array]] = {
    "linear": lambda peak, t, n: peak * (t + 1) / (n + 1),
    "cosine": lambda peak, t, n: peak * half_cosine((n - t) / (n + 1)),
    "exponential": lambda peak, t, n: peak * (n + 1) ** (t / max(n, 1) - 1.0),
}


@dataclass(frozen=True, eq=False)
class Warmup(Schedule):
    """See :func:`warmup`."""

    kind: ClassVar[str] = "warmup"
    schedule: Schedule
    num_steps: int
    shape: str = "linear"
    total_steps: int = field(init=False, repr=False)
    lr: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check.choice(self.kind, "shape", self.shape, tuple(RISES))
        rise = _check.whole(self.kind, "num_steps", self.num_steps, minimum=0)
        follow = require_schedule(self.kind, self.schedule)
        self._store(total_steps=rise + follow.total_steps, lr=follow.lr)

    def _rates(self, steps: IntArray) -> Array:
        rise = RISES[self.shape](self.schedule(0), np.minimum(steps, self.num_steps), self.num_steps)
        follow = self.schedule._rates(np.maximum(steps - self.num_steps, 0))
        return np.where(steps < self.num_steps, rise, follow)

    def _piece(self, steps: IntArray) -> IntArray:
        follow = self.schedule._piece(np.maximum(steps - self.num_steps, 0))
        return np.where(steps < self.num_steps, 0, follow + 1)

    def _turns(self) -> IntArray:
        return self.num_steps + np.append(self.schedule._turns(), 0)


def warmup(schedule: Schedule, num_steps: Steps, shape: str = "linear") -> Warmup:
    r"""Prepend a warmup of ``num_steps`` steps to ``schedule``.

    .. math:: \eta_t = f(0)\, w_t \text{ for } t < n, \qquad \eta_t = f(t - n) \text{ after}

    - ``"linear"``: :math:`w_t = u_t` with :math:`u_t = (t+1)/(n+1)`.
    - ``"cosine"``: :math:`w_t = \tfrac12(1 - \cos \pi u_t)`, which begins and ends slowly.
    - ``"exponential"``: :math:`w_t = (n+1)^{t/n - 1}`, which begins at the same rate as the linear warmup and is
      multiplied by the same number at each step.

    ``total_steps`` of the result includes the warmup: for a run of T steps, make ``schedule`` for T - n. No warmup step
    has rate 0 or repeats f(0). If ``num_steps`` is a fraction, it is one of the whole run, including the warmup.

    Args:
        schedule: Schedule f to begin after the warmup.
        num_steps: Number of steps n.
        shape: ``"linear"``, ``"cosine"`` or ``"exponential"``.

    >>> from eigencurve.schedules.decays import linear
    >>> warmup(linear(2, lr=1.0), 3).values()
    array([0.25, 0.5 , 0.75, 1.  , 0.5 ])
    >>> warmup(linear(2, lr=1.0), 2, shape="exponential").values().round(3)
    array([0.333, 0.577, 1.   , 0.5  ])
    """
    follow = require_schedule("warmup", schedule)
    rise = num_steps.before(follow.total_steps) if isinstance(num_steps, Length) else num_steps
    return Warmup(follow, whole_steps("warmup", "num_steps", rise, minimum=0), shape)


@dataclass(frozen=True, eq=False)
class Part(Schedule):
    """The ``num_steps`` steps of a schedule that begin at its step ``first``; beyond its end it keeps its last rate."""

    kind: ClassVar[str] = "part"
    schedule: Schedule
    first: int
    num_steps: int
    total_steps: int = field(init=False, repr=False)
    lr: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        whole = require_schedule(self.kind, self.schedule)
        first = _check.whole(self.kind, "first", self.first, minimum=0)
        self._store(
            first=first, total_steps=_check.whole(self.kind, "num_steps", self.num_steps, minimum=1), lr=whole.lr
        )

    def _own(self, steps: IntArray) -> IntArray:
        return np.minimum(steps + self.first, self.schedule.total_steps - 1)

    def _rates(self, steps: IntArray) -> Array:
        return self.schedule._rates(self._own(steps))

    def _piece(self, steps: IntArray) -> IntArray:
        held = steps + self.first >= self.schedule.total_steps
        return self.schedule._piece(self._own(steps)) + held

    def _turns(self) -> IntArray:
        return np.clip(self.schedule._turns() - self.first, 0, self.num_steps)


def after_warmup(schedule: Schedule, num_steps: int) -> Schedule:
    """``schedule`` after a linear warmup, or unchanged if ``num_steps`` is 0."""
    return warmup(schedule, num_steps) if num_steps else schedule


@dataclass(frozen=True, eq=False)
class Join(Schedule):
    """See :func:`join`."""

    kind: ClassVar[str] = "join"
    schedules: tuple[Schedule, ...]
    total_steps: int = field(init=False, repr=False)
    lr: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parts = tuple(require_schedule(self.kind, part, "schedules") for part in self.schedules)
        if not parts:
            _check.refuse(self.kind, "schedules", "at least one schedule", "none")
        total_steps, lr = sum(part.total_steps for part in parts), max(part.lr for part in parts)
        self._store(schedules=parts, total_steps=total_steps, lr=lr)

    def _rates(self, steps: IntArray) -> Array:
        rates = np.empty(steps.shape)
        for i, here, own_steps in self._split(steps):
            rates[here] = self.schedules[i]._rates(own_steps)
        return rates

    def _piece(self, steps: IntArray) -> IntArray:
        counts = [int(part._piece(np.array([part.total_steps - 1]))[0]) + 1 for part in self.schedules]
        before = np.cumsum([0, *counts])
        pieces = np.empty(steps.shape, dtype=np.int64)
        for i, here, own_steps in self._split(steps):
            pieces[here] = before[i] + self.schedules[i]._piece(own_steps)
        return pieces

    def _turns(self) -> IntArray:
        ends = np.cumsum([part.total_steps for part in self.schedules])
        turns = [end - part.total_steps + part._turns() for part, end in zip(self.schedules, ends, strict=True)]
        return np.concatenate([ends, *turns])

    def _split(self, steps: IntArray) -> Iterator[tuple[int, NDArray[np.bool_], IntArray]]:
        """For each part that contains some of ``steps``: its place, a mask of those steps, and their numbers in it."""
        ends = np.cumsum([part.total_steps for part in self.schedules])
        place = np.searchsorted(ends[:-1], steps, side="right")
        for i in np.unique(place):
            here = place == i
            yield int(i), here, steps[here] - ends[i] + self.schedules[i].total_steps


def join(schedules: Sequence[Schedule]) -> Join:
    """The given schedules in sequence, each in full; the length is the sum of their lengths.

    >>> from eigencurve.schedules.decays import constant, linear
    >>> join([constant(2, lr=1.0), linear(2, lr=1.0)]).values()
    array([1. , 1. , 1. , 0.5])
    """
    return Join(tuple(schedules))
