"""A schedule as a short table of cubic pieces, for frameworks that compile the training step.

Inside ``jax.jit`` the step is a traced int32 and float64 is switched off. Formulas do badly there: t/T has seven
digits, and where a cosine comes down to zero, 1 + cos(πt/T) has none. A table of all T rates is exact but takes 400 MB
for a hundred million steps. So each schedule is compiled once, in float64, to pieces on which a cubic polynomial of the
whole number t - start is as good as float32 can say; that is some kilobytes whatever T is, and a binary search and a
few multiplications a step. The table is made from the schedule's own values alone: no formula is written twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Schedule

# Frameworks count steps in int32.
MAX_STEPS = 2**31 - 1
# A cubic is good enough where it misses the rate by no more than half a rounding of float32, and where it bends by no
# more than this part of the rate, so that rounding its coefficients and evaluating it adds few roundings.
TOLERANCE = 2.0**-25
BEND = 0.5
# The places of a piece where its cubic is the rate itself, and how many are looked at beside them.
NODES = np.array([0.25, 0.75, 1.0])
NUM_LOOKS = 33
MAX_BREAKS = 2**20
# How many pieces are looked at together.
CHUNK = 2**13
SMALLEST = float(np.finfo(np.float32).tiny)

Float32Array = NDArray[np.float32]
Int32Array = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Segments:
    r"""Cubic pieces of a schedule.

    .. math:: f(t) \approx c_0 + c_1 u + c_2 u^2 + c_3 u^3, \qquad u = (t - t_i)\, s_i, \qquad t_i \le t < t_{i+1}

    Every piece begins with the rate itself, rounded to float32, and a constant piece is it throughout: the first and
    the last step, the step after a jump and all of a step schedule are as exact as float32 can be. Elsewhere tests hold
    the relative error below :math:`2^{-22}`, two to four units in the last place; :math:`2.6 \cdot 2^{-24}` was the
    largest of any kind of schedule over a million steps.

    Attributes:
        total_steps: T.
        starts: :math:`t_i`, the first 0.
        scales: :math:`s_i`, one over the length of the piece.
        coefficients: :math:`c_0 \dots c_3`, one row each.
    """

    total_steps: int
    starts: Int32Array
    scales: Float32Array
    coefficients: Float32Array

    @property
    def nbytes(self) -> int:
        """The memory of the table."""
        return int(self.starts.nbytes + self.scales.nbytes + self.coefficients.nbytes)


def evaluate(segments: Segments, step: Any, xp: Any) -> Any:
    """The rates at ``step``, an integer or an array of integers of the array library ``xp``, perhaps traced.

    A step before the first or beyond the last has the rate of that one: a traced step cannot raise.

    Args:
        segments: from :func:`segments_of`.
        step: 0 … T-1.
        xp: ``numpy``, ``jax.numpy`` or ``keras.ops``.

    >>> from eigencurve import cosine
    >>> evaluate(segments_of(cosine(1_000_000, lr=0.1)), [0, 500_000, 900_000], np)
    array([0.1       , 0.05      , 0.00244717], dtype=float32)
    """
    t = xp.clip(xp.array(step, dtype="int32"), 0, segments.total_steps - 1)
    place = xp.searchsorted(xp.array(segments.starts), t, side="right") - 1
    offset = t - xp.take(xp.array(segments.starts), place)
    u = xp.array(offset, dtype="float32") * xp.take(xp.array(segments.scales), place)
    c0, c1, c2, c3 = (xp.take(xp.array(row), place) for row in segments.coefficients)
    return c0 + u * (c1 + u * (c2 + u * c3))


def segments_of(schedule: Schedule, scale: float = 1.0) -> Segments:
    """Compile ``schedule``; the cost grows with the number of its pieces and the logarithm of T.

    Every piece between two breaks is halved until the cubic through four of its rates agrees with all the
    others that are looked at; a piece of one step always does.

    Args:
        schedule: any.
        scale: what all rates are multiplied by, before they are rounded.

    Raises:
        ValueError: more steps than int32 counts, or more jumps than a table should hold.

    >>> from eigencurve import linear, step_decay
    >>> len(segments_of(step_decay(100_000_000, lr=0.1)).starts)
    26
    >>> segments_of(linear(100_000_000, lr=0.1)).nbytes < 10_000
    True
    """
    if schedule.total_steps > MAX_STEPS:
        _check.refuse("segments_of", "schedule", f"of at most {MAX_STEPS} steps", schedule.total_steps)
    edges = np.append(breaks(schedule), schedule.total_steps)
    parts = [_cubics(schedule, edges[i:-1][:CHUNK], edges[i + 1 :][:CHUNK]) for i in range(0, len(edges) - 1, CHUNK)]
    starts, lengths, coefficients = (np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True))
    table = (scale * coefficients).astype(np.float32)
    keep = ~_repeats(table)
    return Segments(
        schedule.total_steps,
        starts[keep].astype(np.int32),
        (1 / lengths[keep]).astype(np.float32),
        table[:, keep],
    )


def breaks(schedule: Schedule) -> IntArray:
    """Step 0, every step at which another smooth piece of ``schedule`` begins, and the last step.

    >>> from eigencurve import multistep
    >>> breaks(multistep(100, lr=1.0, milestones=[30, 60]))
    array([ 0, 30, 60, 99])
    """
    last = schedule.total_steps - 1
    left, right = np.array([0]), np.array([last])
    while True:
        changed = schedule._piece(left) != schedule._piece(right)
        left, right = left[changed], right[changed]
        if (right - left <= 1).all():
            return np.unique(np.concatenate(([0, last], right)))
        _require_few(schedule, len(left))
        left, right = _halves(left, right)


def _halves(starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    middle = (starts + ends) // 2
    return np.concatenate((starts, middle)), np.concatenate((middle, ends))


def _cubics(schedule: Schedule, starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray, Array]:
    """The starts, lengths and coefficients of the cubics that together are good on all the given pieces."""
    done: list[tuple[IntArray, IntArray, Array]] = []
    while len(starts):
        coefficients, good = _fit(schedule, starts, ends - starts)
        done.append((starts[good], (ends - starts)[good], coefficients[:, good]))
        starts, ends = _halves(starts[~good], ends[~good])
    begin, lengths, table = (np.concatenate(columns, axis=-1) for columns in zip(*done, strict=True))
    order = np.argsort(begin)
    return begin[order], lengths[order], table[:, order]


def _fit(schedule: Schedule, starts: IntArray, lengths: IntArray) -> tuple[Array, BoolArray]:
    """The cubic of every piece, and whether it will do."""
    looks = np.rint(np.multiply.outer(np.linspace(0, 1, NUM_LOOKS), lengths - 1)).astype(np.int64)
    rates = schedule(starts + looks)
    coefficients = np.zeros((4, len(starts)))
    coefficients[0] = rates[0]
    curved = (rates != rates[0]).any(axis=0)
    long = curved & (lengths > len(NODES))
    coefficients[1:, long] = _through(schedule, starts[long], lengths[long])
    c0, c1, c2, c3 = coefficients
    u = looks / lengths
    misses = np.abs(c0 + u * (c1 + u * (c2 + u * c3)) - rates)
    bend, level = np.abs(coefficients[1:]).sum(axis=0), np.abs(rates).min(axis=0)
    good = (misses <= np.maximum(TOLERANCE * np.abs(rates), SMALLEST)).all(axis=0)
    return coefficients, good & (bend <= np.maximum(BEND * level, SMALLEST))


def _through(schedule: Schedule, starts: IntArray, lengths: IntArray) -> Array:
    """c_1 … c_3 of the cubic that begins with the rate at the start and goes through those at the nodes."""
    nodes = np.rint(np.multiply.outer(NODES, lengths - 1)).astype(np.int64)
    powers = np.power.outer((nodes / lengths).T, np.arange(1, 4))
    rises = (schedule(starts + nodes) - schedule(starts)).T
    return np.asarray(np.linalg.solve(powers, rises[..., None])[..., 0].T)


def _repeats(table: Float32Array) -> BoolArray:
    """Whether each piece is constant and goes on with the rate of a constant one before it."""
    flat = (table[1:] == 0).all(axis=0)
    return np.append(False, flat[1:] & flat[:-1] & (table[0, 1:] == table[0, :-1]))


def _require_few(schedule: Schedule, count: int) -> None:
    if count > MAX_BREAKS:
        remedy = "A rate that falls so often is better said by a smooth decay, such as exponential."
        _check.refuse("segments_of", "schedule", f"of at most {MAX_BREAKS:,} pieces", f"{schedule!r}", remedy)
