"""Long runs in a few milliseconds: the expected loss along a schedule, by blocks of nearly equal rates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import Join, Warmup
from eigencurve.schedules.piecewise import Piecewise
from eigencurve.theory.block_kernels import advance_blocks
from eigencurve.theory.nodes import Nodes
from eigencurve.theory.recursion import tame

# How much the rate may change within a block, as a fraction of it.
TOLERANCE = 0.02
# A block whose rates sum to less than this over L moves no coordinate far: its rate may change at will.
SMALLEST_MOVE = 0.05


@dataclass(frozen=True, eq=False)
class Blocks:
    """Consecutive steps of a schedule, in blocks over which its rate hardly changes.

    Attributes:
        counts: how many steps each block has.
        rates: the mean rate of each.
        rises: its last rate less its first.
        marks: numbers of steps at which a block ends, increasing.
        ends: how many blocks lie before each mark.
        peak: the highest rate of all steps.
    """

    counts: IntArray
    rates: Array
    rises: Array
    marks: IntArray
    ends: IntArray
    peak: float

    def __len__(self) -> int:
        return len(self.counts)

    def scaled(self, factor: float) -> Blocks:
        """The blocks of the schedule with every rate multiplied by ``factor``."""
        return replace(self, rates=self.rates * factor, rises=self.rises * factor, peak=self.peak * factor)


@dataclass(frozen=True, eq=False)
class BlockCurve:
    """The expected loss at each of ``marks`` steps, in its parts; infinite from where it diverges."""

    marks: IntArray
    bias: Array
    variance: Array

    @property
    def loss(self) -> Array:
        """Bias and variance together."""
        return self.bias + self.variance


def blocks_of(schedule: Schedule, marks: IntArray, tolerance: float = TOLERANCE, stiffness: float = 2.0) -> Blocks:
    r"""Halve [0, T) until the rate changes by at most ``tolerance`` within every part.

    A schedule is looked up at the ends of the parts only, some thousand steps however long the run: between its
    turning points it is monotone, so equal rates at both ends are equal in between. The mean of a part is
    Simpson's.

    Args:
        schedule: any.
        marks: numbers of steps where a block has to end, increasing, at most T.
        tolerance: the largest change of the rate within a block, as a fraction of it and of its distance from 2/L,
            where a coordinate no longer shrinks. A part with :math:`L\sum\eta_t` below ``SMALLEST_MOVE`` is not
            halved whatever its change.
        stiffness: the largest :math:`\eta_t L` that the blocks will be used for.
    """
    marks = np.asarray(marks, dtype=np.int64)
    start, stop, first, last = _halved(schedule, marks, tolerance, stiffness)
    middle = schedule(np.concatenate(((start + stop - 1) // 2, (start + stop) // 2)))
    mean = (first + 2 * (middle[: len(start)] + middle[len(start) :]) + last) / 6
    ends = np.searchsorted(stop, marks, side="right")
    return Blocks(stop - start, mean, last - first, marks, ends, float(np.maximum(first, last).max()))


def block_curve(nodes: Nodes, blocks: Blocks) -> BlockCurve:
    """The expected loss of plain SGD at the marks of ``blocks``.

    Not exact but for schedules of constant pieces; the error falls with the square of the tolerance. See
    :meth:`NoisyQuadratic.loss_curve` for the exact one, whose cost is T times the number of nodes.

    Raises:
        ValueError: nodes with momentum.
    """
    if nodes.momentum:
        _check.refuse("block_curve", "momentum", "0", nodes.momentum, "loss_curve follows momentum step by step.")
    lam, noise = np.array(nodes.lam), np.array(nodes.noise)
    bias, variance = np.array(nodes.error), np.zeros(len(nodes))
    parts, done, wild = np.full((2, len(blocks.marks)), math.inf), 0, False
    for i, end in enumerate(blocks.ends.tolist()):
        part = slice(done, end)
        advance_blocks(lam, noise, bias, variance, blocks.counts[part], blocks.rates[part], blocks.rises[part])
        done = end
        with np.errstate(over="ignore", invalid="ignore"):
            wild = wild or not tame(nodes, bias + variance).all()
        if wild:
            break
        parts[:, i] = 0.5 * (nodes.weights @ bias), 0.5 * (nodes.weights @ variance)
    return BlockCurve(blocks.marks, parts[0], parts[1])


def block_loss(nodes: Nodes, blocks: Blocks) -> float:
    """The expected loss at the last mark; infinite where it diverges."""
    return float(block_curve(nodes, blocks).loss[-1])


def peak_rate(schedule: Schedule) -> float:
    """The highest rate of all steps, looked up where the rate can be highest only."""
    turns = turning_points(schedule)
    steps = np.concatenate(([0], turns - 1, turns))
    return float(schedule(np.clip(steps, 0, schedule.total_steps - 1)).max())


def turning_points(schedule: Schedule) -> IntArray:
    """Steps between which the rate is monotone, in no order; none for a schedule that only falls."""
    if isinstance(schedule, Piecewise):
        return np.ceil(schedule.knots).astype(np.int64)
    if isinstance(schedule, Warmup):
        return schedule.num_steps + np.append(turning_points(schedule.schedule), 0)
    if isinstance(schedule, Join):
        ends = np.cumsum([part.total_steps for part in schedule.schedules])
        turns = [
            end - part.total_steps + turning_points(part) for part, end in zip(schedule.schedules, ends, strict=True)
        ]
        return np.concatenate([ends, *turns])
    return np.zeros(0, dtype=np.int64)


def _halved(
    schedule: Schedule, marks: IntArray, tolerance: float, stiffness: float
) -> tuple[IntArray, IntArray, Array, Array]:
    """First step, end, first and last rate of every part, in order."""
    edges = np.unique(np.concatenate(([0, int(marks[-1])], marks, turning_points(schedule))))
    edges = edges[edges <= marks[-1]]
    start, stop = edges[:-1], edges[1:]
    first, last = schedule(start), schedule(stop - 1)
    unit = stiffness / max(float(first.max()), float(last.max()))
    parts = []
    while len(start):
        count, x, change = stop - start, unit * np.maximum(first, last), unit * np.abs(first - last)
        split = (change > tolerance * x) & (count * x > SMALLEST_MOVE)
        split |= (change > tolerance * np.abs(2 - x)) & (count * change > SMALLEST_MOVE)
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
    # Halving cuts a constant piece near its end into ever shorter ones: put them together again.
    new = np.append(True, (first[1:] != first[:-1]) | (last != first)[1:] | (last != first)[:-1])
    new[np.searchsorted(start, edges[:-1])] = True
    return start[new], np.append(start[new][1:], stop[-1]), first[new], last[np.append(new[1:], True)]
