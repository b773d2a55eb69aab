"""A piecewise linear schedule through given (step, rate) knots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray, frozen, interpolated
from eigencurve._check import Arg
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.units import Length, Steps, whole_steps


@dataclass(frozen=True, eq=False, repr=False)
class Piecewise(Schedule):
    """See :func:`piecewise`."""

    kind: ClassVar[str] = "piecewise"
    knots: Array
    rates: Array
    lr: float = field(init=False)

    def __post_init__(self) -> None:
        knots = _check.vector(self.kind, "knots", self.knots)
        rates = _check.vector(self.kind, "rates", self.rates)
        if not (rates > 0).any():
            _check.refuse(self.kind, "rates", "> 0 at one knot or more", rates)
        object.__setattr__(self, "lr", float(rates[0] if rates[0] > 0 else rates.max()))
        self._settle(knots=frozen(knots), rates=frozen(rates))
        _check_knots(self)

    def _rates(self, steps: IntArray) -> Array:
        return interpolated(steps, self.knots, self.rates)

    def _piece(self, steps: IntArray) -> IntArray:
        return np.searchsorted(self.knots, steps, side="right")

    def _turns(self) -> IntArray:
        return np.ceil(self.knots).astype(np.int64)

    def __repr__(self) -> str:
        return f"Piecewise(total_steps={self.total_steps}, lr={self.lr:g}, {len(self.knots)} knots)"


def piecewise(total_steps: Steps, knots: Sequence[float | Length] | Array, rates: Sequence[float] | Array) -> Piecewise:
    r"""Linear interpolation between knots, each a step with its rate.

    .. math:: \eta_t = \eta_i + (\eta_{i+1} - \eta_i)\,\frac{t - k_i}{k_{i+1} - k_i}
              \quad\text{for}\quad k_i \le t \le k_{i+1}

    Args:
        total_steps: Total number of steps T.
        knots: Steps in increasing order, from 0 to at least T-1. A single knot makes a constant rate.
        rates: Rate at each knot, not negative. If the first one is 0, as in a warmup from 0, ``lr`` is the largest.

    Raises:
        ValueError: The knots do not increase or do not cover the run, a rate is negative, or the lengths differ.

    >>> piecewise(5, knots=[0, 1, 4], rates=[1.0, 0.5, 0.2]).values()
    array([1. , 0.5, 0.4, 0.3, 0.2])
    """
    total = whole_steps("piecewise", "total_steps", total_steps, minimum=1)
    if not isinstance(knots, np.ndarray):
        knots = np.asarray(
            [whole_steps("piecewise", "knots", k, 0, total) if isinstance(k, Length) else k for k in knots]
        )
    return Piecewise(total, knots, np.asarray(rates))


def _check_knots(schedule: Piecewise) -> None:
    knots, rates, last = schedule.knots, schedule.rates, schedule.total_steps - 1
    if len(knots) != len(rates):
        need = ("as long as ", Arg("knots"), f" ({len(knots)})")
        _check.refuse(schedule.kind, "rates", need, f"{len(rates)} rates")
    if knots[0] != 0 or (np.diff(knots) <= 0).any() or (len(knots) > 1 and knots[-1] < last):
        _check.refuse(schedule.kind, "knots", f"increasing from 0 to at least total_steps - 1 = {last}", knots)
    if (rates < 0).any():
        _check.refuse(schedule.kind, "rates", ">= 0", float(rates.min()))
