"""LoggedRun: the losses that a training run recorded, and its learning-rate schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray, frozen
from eigencurve._check import Arg, Description
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.piecewise import Piecewise, piecewise

# Fewer losses say too little about a curve.
MIN_POINTS = 8
# More steps than any run has; larger numbers in a column of steps are times or tokens.
MAX_STEPS = 10**9


@dataclass(frozen=True, eq=False, repr=False)
class LoggedRun:
    """The losses that a training run recorded, and its learning-rate schedule.

    The loss at step s is that after s optimizer steps, which used the rates f(0) … f(s-1) of the schedule. The loss at
    step 0 is that before training.

    Attributes:
        steps: Number of completed optimizer steps at which each loss was recorded, increasing.
        losses: Loss at each of these steps. Every run of a fit must have the same loss.
        schedule: Learning rate of every step, as a :class:`Schedule` that covers the last logged step or as an array
            with one rate per step. An array becomes a piecewise linear schedule.
        name: Name of the run, for tables and error messages.
        metric: Name of the loss, such as ``"val_loss"``; empty if unknown.

    Raises:
        ValueError: The steps do not increase, a loss is not finite, there are fewer than 8 losses, the schedule ends
            before the last logged step, or a rate is negative or all are 0.

    >>> from eigencurve import cosine
    >>> LoggedRun(steps=range(10, 101, 10), losses=[4, 3.5, 3.2, 3, 2.9, 2.8, 2.7, 2.65, 2.6, 2.6],
    ...           schedule=cosine(100, lr=0.1), name="small")
    LoggedRun(small: 10 losses, 4 at step 10 to 2.6 at step 100; Cosine(total_steps=100, lr=0.1, min_lr=0.0))
    """

    steps: IntArray
    losses: Array
    schedule: Schedule
    name: str = ""
    metric: str = ""

    # Written out, because the fields accept more than they hold.
    def __init__(
        self,
        steps: Sequence[int] | IntArray,
        losses: Sequence[float] | Array,
        schedule: Schedule | Sequence[float] | Array,
        name: str = "",
        metric: str = "",
    ) -> None:
        numbers = _steps(steps)
        values, rates = _losses(losses, numbers), _schedule(schedule, int(numbers[-1]))
        fields = {"steps": numbers, "losses": values, "schedule": rates, "name": str(name), "metric": str(metric)}
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    @property
    def total_steps(self) -> int:
        """Number of steps of the schedule, at least the last logged step."""
        return self.schedule.total_steps

    @cached_property
    def rates(self) -> Array:
        """The learning rate of every step t = 0 … T-1, read-only."""
        return frozen(self.schedule.values())

    @cached_property
    def travel(self) -> Array:
        """The sum of the rates before every step t = 0 … T, read-only."""
        return frozen(np.concatenate(([0.0], np.cumsum(self.rates))))

    @property
    def peak_lr(self) -> float:
        """The largest learning rate."""
        return float(self.rates.max())

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        title = f"{self.name}: " if self.name else ""
        metric = f" ({self.metric})" if self.metric else ""
        ends = " to ".join(f"{self.losses[i]:.6g} at step {self.steps[i]:,}" for i in (0, -1))
        return f"LoggedRun({title}{len(self)} losses{metric}, {ends}; {self.schedule!r})"


def tabulated(rates: Sequence[float] | Array) -> Piecewise:
    """A schedule with the given rate at every step; only the ends of constant stretches become knots.

    >>> tabulated([0.1, 0.1, 0.1, 0.1, 0.05])
    Piecewise(total_steps=5, lr=0.1, 3 knots)
    """
    values = _check.vector("LoggedRun", "schedule", rates)
    if (values < 0).any():
        place = int(np.argmax(values < 0))
        _check.refuse("LoggedRun", "schedule", "rates >= 0", float(values[place]), f"It is the rate of step {place}.")
    if not values.any():
        _check.refuse("LoggedRun", "schedule", "above 0 at one step or more", Description(f"{len(values)} rates of 0"))
    return through(len(values), np.arange(len(values), dtype=np.float64), values)


def through(total_steps: int, knots: Array, rates: Array) -> Piecewise:
    """The piecewise linear schedule through the given rates, without the knots inside constant stretches."""
    same = np.diff(rates) == 0
    inner = np.concatenate(([False], same[:-1] & same[1:], [False])) if len(rates) > 1 else np.array([False])
    return piecewise(total_steps, knots[~inner], rates[~inner])


def _steps(steps: Any) -> IntArray:
    numbers = np.array(steps)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        _check.wrong_type("LoggedRun", "steps", "a sequence of integers", steps)
    if len(numbers) < MIN_POINTS:
        need = f"{MIN_POINTS} logged losses or more"
        _check.refuse("LoggedRun", "steps", need, len(numbers), "Log the loss more often.")
    numbers = numbers.astype(np.int64)
    if numbers[0] < 0:
        _check.refuse("LoggedRun", "steps", ">= 0", int(numbers[0]), "Count the completed optimizer steps.")
    if (np.diff(numbers) <= 0).any():
        place = int(np.argmax(np.diff(numbers) <= 0))
        pair = Description(f"{numbers[place + 1]} after {numbers[place]} (position {place + 1})")
        remedy = "Sort the log by step; if it holds more than one run, split it."
        _check.refuse("LoggedRun", "steps", "increasing", pair, remedy)
    if numbers[-1] > MAX_STEPS:
        remedy = "Count optimizer steps, not tokens, examples or seconds."
        _check.refuse("LoggedRun", "steps", f"<= {MAX_STEPS:,}", int(numbers[-1]), remedy)
    numbers.flags.writeable = False
    return numbers


def _losses(losses: Any, steps: IntArray) -> Array:
    values = _check.real_array("LoggedRun", "losses", "a sequence of real numbers", losses)
    if values.shape != steps.shape:
        need = ("as long as ", Arg("steps"), f" ({len(steps)})")
        _check.refuse("LoggedRun", "losses", need, Description(f"shape {values.shape}"))
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        remedy = f"It is the loss of step {steps[wrong[0]]}: a run that diverged cannot be fitted; remove its tail."
        _check.refuse("LoggedRun", "losses", "finite", float(values[wrong[0]]), remedy)
    return frozen(values)


def _schedule(schedule: Any, last_step: int) -> Schedule:
    rates = schedule if isinstance(schedule, Schedule) else tabulated(schedule)
    if rates.total_steps < last_step:
        remedy = "Pass the schedule of the whole run, with one rate per optimizer step."
        covers = f"at least as long as the log, {last_step} steps"
        _check.refuse("LoggedRun", "schedule", covers, rates.total_steps, remedy)
    return rates
