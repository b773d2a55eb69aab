"""The expected loss along a schedule by blocks of nearly equal rates: long runs in a few milliseconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.sampling import turning_points
from eigencurve.theory.nodes import Nodes
from eigencurve.theory.recursion import advance, within_growth_limit

# Largest relative change of the rate within a block.
TOLERANCE = 0.02
# If the rates of a block sum to less than this over L, no coordinate moves far, and the rate may change freely.
SMALLEST_MOVE = 0.05


@dataclass(frozen=True, eq=False)
class Blocks:
    """The steps of a schedule, in consecutive blocks over which the rate hardly changes.

    Attributes:
        counts: Number of steps of each block.
        rates: Mean rate of each block.
        rises: Last rate minus first rate of each block.
        marks: Numbers of steps, increasing, at which the loss is wanted; a block ends at each.
        ends: Number of blocks before each mark.
        peak: Largest rate of all steps.
    """

    counts: IntArray
    rates: Array
    rises: Array
    marks: IntArray
    ends: IntArray
    peak: float

    def __len__(self) -> int:
        return len(self.counts)

    def scaled(self, scale: float) -> Blocks:
        """The blocks of the schedule with every rate multiplied by ``scale``."""
        return replace(self, rates=self.rates * scale, rises=self.rises * scale, peak=self.peak * scale)


def blocks_of(
    schedule: Schedule,
    marks: IntArray,
    tolerance: float = TOLERANCE,
    stiffness: float = 2.0,
    inertia: float = 1.0,
) -> Blocks:
    r"""Split a schedule into blocks by halving [0, T) until the rate changes by at most ``tolerance`` in each part.

    The schedule is evaluated only at the ends and the middle of the parts, at about a thousand steps however long the
    run is. This is enough because a schedule is monotone between its turning points: if the rates at both ends of a
    part are equal, so are those in between. The mean rate of a part is computed by Simpson's rule.

    Args:
        schedule: Any schedule.
        marks: Numbers of steps at which a block must end, increasing and at most T.
        tolerance: Largest change of the rate within a block, relative to the rate and to its distance from the
            largest stable rate. Parts with :math:`L\sum\eta_t` below ``SMALLEST_MOVE`` are not split.
        stiffness: The schedule's largest rate, after any scaling of the blocks, in units of half the largest stable
            rate; without momentum this is :math:`\eta_t L`.
        inertia: The factor by which momentum multiplies a move; see :attr:`Nodes.inertia`.
    """
    marks = np.asarray(marks, dtype=np.int64)
    start, stop, first, last = _halved(schedule, marks, tolerance, stiffness, inertia)
    middle = schedule(np.concatenate(((start + stop - 1) // 2, (start + stop) // 2)))
    mean = (first + 2 * (middle[: len(start)] + middle[len(start) :]) + last) / 6
    ends = np.searchsorted(stop, marks, side="right")
    return Blocks(stop - start, mean, last - first, marks, ends, float(np.maximum(first, last).max()))


def block_curve(nodes: Nodes, blocks: Blocks) -> Array:
    """The expected loss at the marks of ``blocks``: a row of biases and a row of variances, infinite after divergence.

    It is exact if the schedule consists of constant pieces. Otherwise the error falls with the square of the tolerance.
    :meth:`NoisyQuadratic.loss_curve` is always exact, but its cost is T times the number of nodes.
    """
    bias, variance = nodes.state_of(nodes.error), nodes.state_of(0.0)
    parts, done = np.full((2, len(blocks.marks)), math.inf), 0
    for i, end in enumerate(blocks.ends.tolist()):
        advance(nodes, bias, variance, blocks.counts[done:end], blocks.rates[done:end], blocks.rises[done:end])
        done = end
        if not within_growth_limit(nodes, bias[0], variance[0]).all():
            break
        parts[:, i] = 0.5 * (nodes.weights @ bias[0]), 0.5 * (nodes.weights @ variance[0])
    return parts


def block_loss(nodes: Nodes, blocks: Blocks) -> float:
    """The expected loss at the last mark, or infinity if it diverges."""
    return float(block_curve(nodes, blocks)[:, -1].sum())


def block_loss_gradient(nodes: Nodes, counts: IntArray, rates: Array) -> tuple[float, Array]:
    """The expected loss after blocks of ``counts`` steps at constant ``rates``, and its derivative in every rate."""
    gradient = np.empty(len(rates))
    loss = nodes.kernels.block_loss_and_gradient(nodes.problem(), counts, np.array(rates), gradient)
    return loss, gradient


def _halved(
    schedule: Schedule, marks: IntArray, tolerance: float, stiffness: float, inertia: float
) -> tuple[IntArray, IntArray, Array, Array]:
    """The first step, end, first rate and last rate of every part, in order."""
    edges = np.unique(np.concatenate(([0, int(marks[-1])], marks, turning_points(schedule))))
    edges = edges[edges <= marks[-1]]
    start, stop = edges[:-1], edges[1:]
    first, last = schedule(start), schedule(stop - 1)
    unit = stiffness / max(float(first.max()), float(last.max()))
    parts = []
    while len(start):
        count, x, change = stop - start, unit * np.maximum(first, last), unit * np.abs(first - last)
        move = inertia * count
        split = (change > tolerance * x) & (move * x > SMALLEST_MOVE)
        split |= (change > tolerance * np.abs(2 - x)) & (move * change > SMALLEST_MOVE)
        split &= count > 1
        parts.append((start[~split], stop[~split], first[~split], last[~split]))
        start, stop, first, last = start[split], stop[split], first[split], last[split]
        middle = (start + stop) // 2
        rates = schedule(np.concatenate((middle - 1, middle)))
        start, stop = np.concatenate((start, middle)), np.concatenate((middle, stop))
        first = np.concatenate((first, rates[len(middle) :]))
        last = np.concatenate((rates[: len(middle)], last))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0])
    start, stop, first, last = (column[order] for column in columns)
    # Halving splits a constant piece near its end into ever shorter parts: merge them again.
    new = np.append(True, (first[1:] != first[:-1]) | (last != first)[1:] | (last != first)[:-1])
    new[np.searchsorted(start, edges[:-1])] = True
    return start[new], np.append(start[new][1:], stop[-1]), first[new], last[np.append(new[1:], True)]
