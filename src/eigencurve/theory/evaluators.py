"""Ways to evaluate schedules in a search: exactly, step by step, by blocks of nearly equal rates, or both.

All answer the same questions, so :func:`~eigencurve.theory.tuning.best_scale` and
:func:`~eigencurve.theory.optimal.search` run the same algorithm on each of them. The loss of a schedule that diverges
is infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.sampling import peak_rate
from eigencurve.theory.blocks import block_loss, block_loss_gradient, blocks_of
from eigencurve.theory.nodes import Nodes, compress
from eigencurve.theory.recursion import final_loss, loss_gradient

# The blocks evaluator tunes scales on about 64 nodes, where the loss is flat, and ranks schedules on about 256.
SCALE_CELLS, FINE_CELLS = 32, 128
SCALE_TOLERANCE, FINE_TOLERANCE = 0.25, 0.02
# Searches follow every step of shorter runs, which takes a few seconds; with momentum, steps take longer.
LONG_RUN, LONG_RUN_WITH_MOMENTUM = 50_000, 10_000


@dataclass(frozen=True, eq=False)
class StepEvaluator:
    """Exact losses: every step is followed. The cost grows with T times the number of nodes.

    Scales and gradients are computed on the compressed nodes, ``loss`` on all of them.
    """

    nodes: Nodes

    @cached_property
    def few(self) -> Nodes:
        """About 128 nodes with nearly the same loss."""
        return compress(self.nodes)

    def loss(self, schedule: Schedule) -> float:
        """The exact expected loss on all nodes."""
        return final_loss(self.nodes, np.array(schedule.values()))

    def scaled_losses(self, schedule: Schedule) -> Callable[[Array], Array]:
        """The losses of scaled schedules, exact on the compressed nodes."""
        rates = schedule.values()
        return lambda scales: np.array([final_loss(self.few, rates * scale) for scale in scales])

    def loss_at_knots(self, total_steps: int, knots: IntArray) -> Callable[[Array], tuple[float, Array]]:
        """Loss and gradient of straight lines through ``knots``, exact on the compressed nodes."""
        lines = _lines(total_steps, knots)
        return _in_values(lines, lambda rates: loss_gradient(self.few, rates))


@dataclass(frozen=True, eq=False)
class BlockEvaluator:
    """Approximate losses by blocks of nearly equal rates. The cost hardly depends on T.

    ``loss`` uses about 256 nodes and blocks over which the rate changes by at most 2 %. The gradient is that of a
    schedule with one constant rate around each knot, the mean of the straight lines there.
    """

    nodes: Nodes

    @cached_property
    def few(self) -> Nodes:
        """About 128 nodes with nearly the same loss."""
        return compress(self.nodes)

    @cached_property
    def _coarse(self) -> Nodes:
        return compress(self.nodes, SCALE_CELLS)

    @cached_property
    def _fine(self) -> Nodes:
        return compress(self.nodes, FINE_CELLS)

    def loss(self, schedule: Schedule) -> float:
        """The expected loss, typically within 0.05 %."""
        stiffness = max(2.0, 2 * peak_rate(schedule) / self.nodes.stable_rate)
        marks = np.array([schedule.total_steps])
        return block_loss(self._fine, blocks_of(schedule, marks, FINE_TOLERANCE, stiffness, self.nodes.inertia))

    def scaled_losses(self, schedule: Schedule) -> Callable[[Array], Array]:
        """The losses of scaled schedules, on coarser blocks and nodes."""
        blocks = blocks_of(schedule, np.array([schedule.total_steps]), SCALE_TOLERANCE, inertia=self.nodes.inertia)
        return lambda scales: np.array([block_loss(self._coarse, blocks.scaled(scale)) for scale in scales])

    def loss_at_knots(self, total_steps: int, knots: IntArray) -> Callable[[Array], tuple[float, Array]]:
        """Loss and gradient of a schedule that is constant around each of ``knots``."""
        counts, means = _cells(total_steps, knots)
        return _in_values(means, lambda rates: block_loss_gradient(self.few, counts, rates))


@dataclass(frozen=True, eq=False)
class LongRunEvaluator(BlockEvaluator):
    """Exact losses of the few schedules that a search ends with, and blocks for the many on its way there.

    The search finds nearly the same schedule as with :class:`StepEvaluator`, in a small fraction of the time.
    """

    def loss(self, schedule: Schedule) -> float:
        """The exact expected loss on all nodes."""
        return final_loss(self.nodes, np.array(schedule.values()))


Evaluator = StepEvaluator | BlockEvaluator


def exact_evaluator(nodes: Nodes, total_steps: int) -> Evaluator:
    """The evaluator with exact losses that suits a run of ``total_steps``."""
    longest = LONG_RUN_WITH_MOMENTUM if nodes.momentum else LONG_RUN
    return LongRunEvaluator(nodes) if total_steps > longest else StepEvaluator(nodes)


def _in_values(
    matrix: Any, loss_gradient_in_rates: Callable[[Array], tuple[float, Array]]
) -> Callable[[Array], tuple[float, Array]]:
    """The loss as a function of ``values``, where the rates are ``matrix @ values``."""

    def loss_and_gradient(values: Array) -> tuple[float, Array]:
        loss, slopes = loss_gradient_in_rates(matrix @ values)
        return loss, matrix.T @ slopes

    return loss_and_gradient


def _lines(total_steps: int, knots: IntArray) -> Any:
    """The sparse matrix that maps the values at ``knots`` to the straight lines between them, at every step."""
    steps, last = np.arange(total_steps), len(knots) - 1
    left = np.clip(np.searchsorted(knots, steps, side="right") - 1, 0, max(last - 1, 0))
    right = np.minimum(left + 1, last)
    part = (steps - knots[left]) / np.maximum(knots[right] - knots[left], 1)
    columns, weights = np.concatenate((left, right)), np.concatenate((1 - part, part))
    return csr_array((weights, (np.tile(steps, 2), columns)), shape=(total_steps, len(knots)))


def _cells(total_steps: int, knots: IntArray) -> tuple[IntArray, Any]:
    r"""One cell of steps around each knot: the number of its steps, and the matrix that gives the mean rate there.

    A cell ends halfway to the next knot. Of the straight line from knot i to the next, at distance b, its first n
    steps contain the weight :math:`\sum_{s<n} s/b = n(n-1)/(2b)` of the next knot's value; likewise to the left.
    """
    index, gaps = np.arange(len(knots)), np.diff(knots)
    edges = np.concatenate(([0], (knots[:-1] + knots[1:]) // 2 + 1, [total_steps]))
    counts, before, after = np.diff(edges), knots - edges[:-1], edges[1:] - knots
    left = before * (before + 1) / (2 * counts * np.append(1, gaps))
    right = after * (after - 1) / (2 * counts * np.append(gaps, 1))
    columns = np.concatenate((np.maximum(index - 1, 0), index, np.minimum(index + 1, len(knots) - 1)))
    weights = np.concatenate((left, 1 - left - right, right))
    return counts, csr_array((weights, (np.tile(index, 3), columns)), shape=(len(knots), len(knots)))
