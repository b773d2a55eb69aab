"""The exact expected loss of a schedule: the bias and variance of every coordinate, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Schedule
from eigencurve.theory.kernels import SHORTEST_RUN
from eigencurve.theory.nodes import Nodes
from eigencurve.theory.stability import largest_stable_rate

# Number of rates held in memory at once, and number of nodes whose state fits into the processor's cache.
CHUNK = 1 << 16
BLOCK = 2048
# A coordinate has diverged when its error has grown by this factor: the others are then below its rounding error.
GROWTH_LIMIT = 1e16


class DivergenceError(ArithmeticError):
    """The learning rate was too high for too long, so the expected loss grows without bound.

    Attributes:
        eigenvalue: Eigenvalue λ whose error grew the most.
        step: Number of steps after which the divergence was detected.
        limit: Largest rate at which that error does not grow; see
            :func:`eigencurve.theory.stability.largest_stable_rate`.
    """

    def __init__(self, eigenvalue: float, step: int, limit: float) -> None:
        self.eigenvalue = eigenvalue
        self.step = step
        self.limit = limit
        super().__init__(
            f"expected_loss: the schedule diverges, detected after {step} steps at the eigenvalue {eigenvalue:g}. Its "
            f"error grows at every step with a rate above {limit:g}. Lower the learning rate."
        )

    def __reduce__(self) -> tuple[type[DivergenceError], tuple[float, int, float]]:
        return type(self), (self.eigenvalue, self.step, self.limit)


@dataclass(frozen=True, eq=False)
class LossParts:
    r"""An expected loss :math:`\tfrac12\sum_j w_j e_j`, split into bias and variance and by octave.

    Attributes:
        bias: Loss that remains from the initial error.
        variance: Loss caused by the gradient noise.
        octave: Index i of each non-empty octave [μ 2^i, μ 2^(i+1)).
        lower: Lower edge of each octave.
        octave_bias: Part of ``bias`` in each octave.
        octave_variance: Part of ``variance`` in each octave.
    """

    bias: float
    variance: float
    octave: IntArray
    lower: Array
    octave_bias: Array
    octave_variance: Array

    @property
    def loss(self) -> float:
        """The sum of bias and variance."""
        return self.bias + self.variance

    def __str__(self) -> str:
        head = f"expected loss {self.loss:.6g} = bias {self.bias:.6g} + variance {self.variance:.6g}"
        rows = [
            f"  {i:>6} {lower:>11.4g} {bias:>12.4e} {variance:>12.4e}"
            for i, lower, bias, variance in zip(
                self.octave, self.lower, self.octave_bias, self.octave_variance, strict=True
            )
        ]
        return "\n".join([head, f"  {'octave':>6} {'from':>11} {'bias':>12} {'variance':>12}", *rows])

    def __repr__(self) -> str:
        return f"LossParts(bias={self.bias:.6g}, variance={self.variance:.6g}, {len(self.octave)} octaves)"


@dataclass(frozen=True, eq=False)
class LossCurve:
    """The expected loss at several points of a run, split like :class:`LossParts`.

    Attributes:
        steps: Number of steps taken at each point.
        bias: Loss that remains from the initial error, at each point.
        variance: Loss caused by the gradient noise, at each point.
        octave: Index of each non-empty octave.
        lower: Lower edge of each octave.
        octave_bias: Part of ``bias`` in each octave: one row per point, one column per octave.
        octave_variance: Part of ``variance`` in each octave, likewise.
    """

    steps: IntArray
    bias: Array
    variance: Array
    octave: IntArray
    lower: Array
    octave_bias: Array
    octave_variance: Array

    @property
    def loss(self) -> Array:
        """The sum of bias and variance at each point."""
        return self.bias + self.variance


def states(nodes: Nodes, schedule: Schedule, marks: IntArray) -> Iterator[tuple[Array, Array]]:
    """The bias and variance of every node after each of ``marks`` steps (increasing, at most T).

    The arrays are working memory that the next mark overwrites; copy what you keep.

    Raises:
        DivergenceError: An error has grown by more than ``GROWTH_LIMIT``.
    """
    bias, variance = nodes.state_of(nodes.error), nodes.state_of(0.0)
    done = 0
    for mark in marks.tolist():
        while done < mark:
            stop = min(mark, done + CHUNK)
            _advance_steps(nodes, bias, variance, np.array(schedule(np.arange(done, stop))))
            done = stop
            _require_bounded(nodes, bias[0], variance[0], done)
        yield bias[0], variance[0]


def final_loss(nodes: Nodes, rates: Array) -> float:
    """The expected loss after the steps of ``rates``, or infinity if it diverges."""
    bias, variance = nodes.state_of(nodes.error), nodes.state_of(0.0)
    _advance_steps(nodes, bias, variance, rates)
    bounded = within_growth_limit(nodes, bias[0], variance[0]).all()
    return 0.5 * float(nodes.weights @ (bias[0] + variance[0])) if bounded else float("inf")


def loss_gradient(nodes: Nodes, rates: Array) -> tuple[float, Array]:
    """The expected loss after the steps of ``rates``, and its derivative in every rate.

    The derivative is computed backwards from the last step. The errors before each step are stored every √T steps and
    recomputed in between, so memory grows as √T.
    """
    rates, gradient, problem = np.array(rates), np.empty(len(rates)), nodes.problem()
    length = math.isqrt(len(rates) - 1) + 1
    parts = [slice(start, start + length) for start in range(0, len(rates), length)]
    state, adjoint = nodes.state_of(nodes.error), nodes.state_of(0.5 * nodes.weights)
    marks, trail = [], np.empty((length + 1, *state.shape))
    for part in parts:
        marks.append(state)
        trail[0] = state
        nodes.kernels.follow(problem, trail, rates[part])
        state = trail[len(rates[part])].copy()
    for part, mark in zip(reversed(parts), reversed(marks), strict=True):
        trail[0] = mark
        nodes.kernels.follow(problem, trail, rates[part])
        nodes.kernels.pull_back(problem, trail, adjoint, rates[part], gradient[part])
    return 0.5 * float(nodes.weights @ state[0]), gradient


def loss_parts(nodes: Nodes, octaves: tuple[IntArray, Array, IntArray], schedule: Schedule) -> LossParts:
    """The expected loss after all steps of ``schedule``, split into its parts."""
    curve = loss_curve(nodes, octaves, schedule, np.array([schedule.total_steps]))
    parts = curve.octave_bias[0], curve.octave_variance[0]
    return LossParts(float(curve.bias[0]), float(curve.variance[0]), curve.octave, curve.lower, *parts)


def loss_curve(
    nodes: Nodes, octaves: tuple[IntArray, Array, IntArray], schedule: Schedule, marks: IntArray
) -> LossCurve:
    """The expected loss after each of ``marks`` steps, split into its parts."""
    index, lower, place = octaves
    half = 0.5 * nodes.weights
    rows = [
        (half @ b, half @ v, np.bincount(place, half * b, len(index)), np.bincount(place, half * v, len(index)))
        for b, v in states(nodes, schedule, marks)
    ]
    bias, variance, octave_bias, octave_variance = (np.array(column) for column in zip(*rows, strict=True))
    return LossCurve(marks, bias, variance, index, lower, octave_bias, octave_variance)


def divergence(nodes: Nodes, eigenvalue: float, step: int) -> DivergenceError:
    """The error to raise if the coordinate of ``eigenvalue`` has diverged after ``step`` steps."""
    return DivergenceError(eigenvalue, step, limit=largest_stable_rate(eigenvalue, nodes.momentum, nodes.nesterov))


def within_growth_limit(nodes: Nodes, bias: Array, variance: Array) -> NDArray[np.bool_]:
    """For each node, whether its error is finite and has not grown by more than ``GROWTH_LIMIT``."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = bias + variance
        return np.asarray(np.isfinite(error) & (error <= GROWTH_LIMIT * _size(nodes)))


def advance(nodes: Nodes, bias: Array, variance: Array, counts: IntArray, rates: Array, rises: Array) -> None:
    """Take the states of bias and variance through blocks of steps, in place; see :func:`kernels.advance`."""
    for start in range(0, len(nodes), BLOCK):
        part = slice(start, start + BLOCK)
        states = bias[:, part].copy(), variance[:, part].copy()
        nodes.kernels.advance(nodes.problem(part), *states, counts, rates, rises)
        bias[:, part], variance[:, part] = states


def _advance_steps(nodes: Nodes, bias: Array, variance: Array, rates: Array) -> None:
    """Take the states through the steps of ``rates``; long runs of equal rates are one block each."""
    starts = np.flatnonzero(np.append(True, rates[1:] != rates[:-1]))
    counts = np.diff(starts, append=len(rates))
    long = counts >= SHORTEST_RUN
    repeats = np.where(long, 1, counts)
    blocks = np.repeat(np.where(long, counts, 1), repeats)
    advance(nodes, bias, variance, blocks, np.repeat(rates[starts], repeats), np.zeros(len(blocks)))


def _size(nodes: Nodes) -> Array:
    """The size of an error that has not grown: the initial error plus the noise at the largest stable rate."""
    return np.asarray(nodes.error + nodes.noise * nodes.stable_rate**nodes.noise_power)


def _require_bounded(nodes: Nodes, bias: Array, variance: Array, step: int) -> None:
    bounded = within_growth_limit(nodes, bias, variance)
    if bounded.all():
        return
    with np.errstate(over="ignore", invalid="ignore"):
        growth = np.nan_to_num((bias + variance) / _size(nodes), nan=np.inf, posinf=np.inf)
    growth[bounded] = -1.0
    raise divergence(nodes, float(nodes.lam[len(nodes) - 1 - int(np.argmax(growth[::-1]))]), step)
