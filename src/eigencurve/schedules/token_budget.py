"""A schedule over tokens as a schedule over steps, for batches that grow during the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Schedule, require_schedule

# A position this close to a whole step of the inner schedule, relative to the position, is that step.
CLOSE = 1e-12


@dataclass(frozen=True, eq=False)
class OverTokens(Schedule):
    """See :func:`over_tokens`.

    Attributes:
        schedule: Schedule over tokens; each of its steps stands for the same number of tokens.
        starts: Steps at which the number of tokens per step changes; 0 is the first.
        tokens_per_step: Number of tokens per step from each of these steps on.
        budget: Total number of tokens.
    """

    kind: ClassVar[str] = "over_tokens"
    schedule: Schedule
    starts: tuple[int, ...]
    tokens_per_step: tuple[int, ...]
    budget: int
    total_steps: int = field(init=False, repr=False)
    lr: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        inner = require_schedule(self.kind, self.schedule)
        budget = _check.whole(self.kind, "budget", self.budget, minimum=1)
        starts = tuple(_check.whole(self.kind, "starts", start, minimum=0) for start in self.starts)
        counts = tuple(_check.whole(self.kind, "tokens_per_step", n, minimum=1) for n in self.tokens_per_step)
        if not starts or starts[0] != 0 or any(b <= a for a, b in pairwise(starts)) or len(starts) != len(counts):
            need = "pairs (first step, tokens per step) with increasing steps from 0"
            _check.refuse(self.kind, "tokens_per_step", need, list(zip(starts, counts, strict=False)))
        total_steps = _num_steps(starts, counts, budget)
        self._store(starts=starts, tokens_per_step=counts, budget=budget, total_steps=total_steps, lr=inner.lr)

    def tokens_before(self, steps: IntArray) -> IntArray:
        """The number of tokens that the run has seen before each step."""
        starts, counts = np.array(self.starts), np.array(self.tokens_per_step)
        at_start = np.concatenate(([0], np.cumsum(np.diff(starts) * counts[:-1])))
        phase = self._phase(steps)
        return np.asarray(at_start[phase] + (steps - starts[phase]) * counts[phase])

    def _phase(self, steps: IntArray) -> IntArray:
        return np.searchsorted(self.starts, steps, side="right") - 1

    def _place(self, steps: IntArray) -> tuple[IntArray, Array]:
        """The step of the inner schedule, and the fraction of it that has passed."""
        position = self.tokens_before(steps) / (self.budget / self.schedule.total_steps)
        whole = np.rint(position)
        position = np.where(np.abs(position - whole) <= CLOSE * whole, whole, position)
        step = np.minimum(np.floor(position), self.schedule.total_steps - 1)
        return step.astype(np.int64), np.minimum(position - step, 1.0)

    def _rates(self, steps: IntArray) -> Array:
        step, part = self._place(steps)
        later = np.minimum(step + 1, self.schedule.total_steps - 1)
        rate = self.schedule._rates(step)
        # Between two steps the rate is interpolated, except across a jump.
        smooth = self.schedule._piece(step) == self.schedule._piece(later)
        return np.asarray(np.where(smooth, rate + part * (self.schedule._rates(later) - rate), rate))

    def _turns(self) -> IntArray:
        return np.arange(self.total_steps if len(self.schedule._turns()) else 0)

    def _piece(self, steps: IntArray) -> IntArray:
        return self.schedule._piece(self._place(steps)[0]) + self._phase(steps)


def over_tokens(
    schedule: Schedule, budget: float, tokens_per_step: float | Sequence[tuple[int, float]] | Callable[[int], float]
) -> OverTokens:
    r"""A schedule whose progress is counted in tokens, for a run whose batches grow.

    .. math:: \eta_t = f\!\left(\frac{n_t}{N}\, T_f\right), \qquad n_t = \sum_{s<t} b_s

    Step t has the rate that f has after the same share of the budget. The run ends with the step that reaches the
    budget N. With batches of one size, and f of N / b steps, the result is f itself.

    Args:
        schedule: Schedule f. Each of its :math:`T_f` steps stands for :math:`N/T_f` tokens, so more steps make a finer
            curve; between them the rate is interpolated.
        budget: Total number of tokens N, or of examples or anything else that you count.
        tokens_per_step: Number of tokens per optimizer update :math:`b_s`, over all processes and accumulated
            microbatches: one number, a list of (first step, tokens per step), or a function of the step.

    Raises:
        ValueError: A number of tokens is not positive and whole, or the list does not begin at step 0.

    >>> from eigencurve.schedules.decays import linear
    >>> f = over_tokens(linear(8, lr=1.0), budget=800, tokens_per_step=[(0, 100), (4, 200)])
    >>> f.values()
    array([1.   , 0.875, 0.75 , 0.625, 0.5  , 0.25 ])
    """
    total = _count("budget", budget)
    if callable(tokens_per_step):
        pairs = _runs(tokens_per_step, total)
    elif isinstance(tokens_per_step, Sequence):
        pairs = [(start, _count("tokens_per_step", count)) for start, count in tokens_per_step]
    else:
        pairs = [(0, _count("tokens_per_step", tokens_per_step))]
    return OverTokens(schedule, tuple(start for start, _ in pairs), tuple(count for _, count in pairs), total)


def _count(argument: str, value: Any) -> int:
    """A positive whole number, also if it is written as 1e9."""
    number = _check.positive("over_tokens", argument, value)
    if number != int(number):
        _check.refuse("over_tokens", argument, "a whole number", value)
    return int(value)


def _runs(tokens_per_step: Callable[[int], float], budget: int) -> list[tuple[int, int]]:
    """The steps at which the function changes, until the budget is reached."""
    pairs: list[tuple[int, int]] = []
    step, seen = 0, 0
    while seen < budget:
        count = _count("tokens_per_step", tokens_per_step(step))
        if not pairs or count != pairs[-1][1]:
            pairs.append((step, count))
        step, seen = step + 1, seen + count
    return pairs


def _num_steps(starts: tuple[int, ...], counts: tuple[int, ...], budget: int) -> int:
    seen = 0
    for (start, end), count in zip(pairwise(starts), counts, strict=False):
        if seen + (end - start) * count >= budget:
            return start + -(-(budget - seen) // count)
        seen += (end - start) * count
    return starts[-1] + -(-(budget - seen) // counts[-1])
