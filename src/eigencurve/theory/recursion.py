"""The exact expected loss of a schedule, by carrying bias and variance of every coordinate through its steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Schedule
from eigencurve.theory.kernels import advance, advance_momentum
from eigencurve.theory.nodes import Nodes

# Steps whose rates are held at once, and nodes whose state stays in the processor's cache meanwhile.
CHUNK = 1 << 16
BLOCK = 2048
# A coordinate whose error has grown by this factor has diverged: float64 then knows nothing of the others.
GROWTH_LIMIT = 1e16


class DivergenceError(ArithmeticError):
    """The learning rate was above 2 (1 + m)/λ, m the momentum, for too long: the expected loss grows without bound.

    Attributes:
        eigenvalue: the λ whose error grew most.
        step: the number of steps after which that was seen.
        limit: the largest rate at which that error does not grow.
    """

    def __init__(self, eigenvalue: float, step: int, limit: float) -> None:
        self.eigenvalue = eigenvalue
        self.step = step
        self.limit = limit
        super().__init__(
            f"expected_loss: the schedule diverges, seen after {step} steps at the eigenvalue {eigenvalue:g}, whose "
            f"error grows at every step with a rate above {limit:g}. Lower the rate."
        )

    def __reduce__(self) -> tuple[type[DivergenceError], tuple[float, int, float]]:
        return type(self), (self.eigenvalue, self.step, self.limit)


@dataclass(frozen=True, eq=False)
class LossParts:
    r"""An expected loss :math:`\tfrac12\sum_j w_j e_j`, split into bias and variance, and by octave.

    Attributes:
        bias: what is left of the initial error.
        variance: what the gradient noise has put in.
        octave: i of each non-empty octave [μ 2^i, μ 2^(i+1)).
        lower: its lower edge.
        octave_bias, octave_variance: each octave's part of ``bias`` and ``variance``.
    """

    bias: float
    variance: float
    octave: IntArray
    lower: Array
    octave_bias: Array
    octave_variance: Array

    @property
    def loss(self) -> float:
        """Bias and variance together."""
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


@dataclass(frozen=True, eq=False)
class LossCurve:
    """The expected loss along a run.

    Attributes:
        steps: the number of steps done at each point.
        bias, variance: of the loss at each point.
        octave, lower: the non-empty octaves and their lower edges.
        octave_bias, octave_variance: one row a point, one column an octave.
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
        """Bias and variance together, at each point."""
        return self.bias + self.variance


def states(nodes: Nodes, schedule: Schedule, marks: IntArray) -> Iterator[tuple[Array, Array]]:
    """Bias and variance of each node's error after ``marks`` steps (increasing, at most T), one pair a mark.

    The arrays are the working memory: copy what is to be kept.

    Raises:
        DivergenceError: an error has grown by more than ``GROWTH_LIMIT``.
    """
    lam, noise = np.array(nodes.lam), np.array(nodes.noise)
    bias = np.zeros((3, len(nodes))) if nodes.momentum else np.zeros(len(nodes))
    variance = np.zeros_like(bias)
    bias.reshape(-1, len(nodes))[0] = nodes.error
    done = 0
    for mark in marks.tolist():
        while done < mark:
            stop = min(mark, done + CHUNK)
            rates = np.array(schedule(np.arange(done, stop)))
            _advance(nodes.momentum, lam, noise, bias, variance, rates)
            done = stop
            _require_finite(nodes, bias, variance, done)
        yield bias.reshape(-1, len(nodes))[0], variance.reshape(-1, len(nodes))[0]


def final_loss(nodes: Nodes, rates: Array) -> float:
    """The expected loss after the steps of ``rates``; infinite where it diverges. For searches over schedules."""
    bias = np.zeros((3, len(nodes))) if nodes.momentum else np.zeros(len(nodes))
    variance = np.zeros_like(bias)
    bias.reshape(-1, len(nodes))[0] = nodes.error
    _advance(nodes.momentum, np.array(nodes.lam), np.array(nodes.noise), bias, variance, rates)
    error = (bias + variance).reshape(-1, len(nodes))[0]
    return 0.5 * float(nodes.weights @ error) if tame(nodes, error).all() else float("inf")


def loss_parts(nodes: Nodes, octaves: tuple[IntArray, Array, IntArray], schedule: Schedule) -> LossParts:
    """The expected loss after all steps of ``schedule``."""
    curve = loss_curve(nodes, octaves, schedule, np.array([schedule.total_steps]))
    return LossParts(
        float(curve.bias[0]), float(curve.variance[0]), curve.octave, curve.lower, curve.octave_bias[0],
        curve.octave_variance[0],
    )  # fmt: skip


def loss_curve(
    nodes: Nodes, octaves: tuple[IntArray, Array, IntArray], schedule: Schedule, marks: IntArray
) -> LossCurve:
    """The expected loss after each of ``marks`` steps."""
    index, lower, place = octaves
    half = 0.5 * nodes.weights
    rows = [
        (half @ b, half @ v, np.bincount(place, half * b, len(index)), np.bincount(place, half * v, len(index)))
        for b, v in states(nodes, schedule, marks)
    ]
    bias, variance, octave_bias, octave_variance = (np.array(column) for column in zip(*rows, strict=True))
    return LossCurve(marks, bias, variance, index, lower, octave_bias, octave_variance)


def divergence(nodes: Nodes, eigenvalue: float, step: int) -> DivergenceError:
    """The error to raise where the coordinate of ``eigenvalue`` has diverged after ``step`` steps."""
    return DivergenceError(eigenvalue, step, limit=2 * (1 + nodes.momentum) / eigenvalue)


def tame(nodes: Nodes, error: Array) -> NDArray[np.bool_]:
    """Where the error is a finite number within the growth limit."""
    return np.asarray(np.isfinite(error) & (error <= GROWTH_LIMIT * (nodes.error + nodes.noise)))


def _advance(momentum: float, lam: Array, noise: Array, bias: Array, variance: Array, rates: Array) -> None:
    if momentum:
        advance_momentum(lam, noise, momentum, bias, variance, rates)
        return
    for start in range(0, len(lam), BLOCK):
        part = slice(start, start + BLOCK)
        advance(lam[part], noise[part], bias[part], variance[part], rates)


def _require_finite(nodes: Nodes, bias: Array, variance: Array, step: int) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        error = (bias + variance).reshape(-1, len(nodes))[0]
        calm = tame(nodes, error)
    if not calm.all():
        wild = np.where(calm, -1.0, np.nan_to_num(error / (nodes.error + nodes.noise), nan=np.inf, posinf=np.inf))
        raise divergence(nodes, float(nodes.lam[len(nodes) - 1 - int(np.argmax(wild[::-1]))]), step)
