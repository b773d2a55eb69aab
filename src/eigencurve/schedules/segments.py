"""A schedule as a short list of cubic pieces, for frameworks that compile the training step.

Inside ``jax.jit`` the step is a traced int32 and float64 is disabled. Formulas are inaccurate there: t/T has seven
digits, and near the end of a cosine 1 + cos(πt/T) has none. An array of all T rates is exact, but takes 400 MB for a
hundred million steps. So each schedule is compiled once, in float64, into pieces. On each piece a cubic polynomial in
the integer t - start is as accurate as float32 allows. The pieces take a few kilobytes for any T; a step costs a binary
search and a few multiplications. They are fitted to the schedule's own values, so no formula is implemented twice.
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
# A cubic is accepted if its error is at most half a rounding unit of float32, and if it changes by at most the fraction
# BEND of the rate: rounding its coefficients and evaluating it then adds few rounding errors.
TOLERANCE = 2.0**-25
BEND = 0.5
# Relative positions in a piece at which its cubic interpolates the rate, and the number of positions that are checked.
NODES = np.array([0.25, 0.75, 1.0])
NUM_CHECKS = 33
MAX_BREAKS = 2**20
# Number of pieces that are fitted at once.
CHUNK = 2**13
SMALLEST = float(np.finfo(np.float32).tiny)

Float32Array = NDArray[np.float32]
Int32Array = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Segments:
    r"""A schedule as cubic pieces.

    .. math:: f(t) \approx c_0 + c_1 u + c_2 u^2 + c_3 u^3, \qquad u = (t - t_i)\, s_i, \qquad t_i \le t < t_{i+1}

    Every piece starts with the exact rate, rounded to float32, and a constant piece has it throughout. So the first
    and last step, the step after a jump and every step of a staircase are correct to float32. Elsewhere the tests
    require a relative error below :math:`2^{-22}`, two to four units in the last place. The largest error that was
    measured over a million steps, for any kind of schedule, is :math:`2.6 \cdot 2^{-24}`.

    Attributes:
        total_steps: Total number of steps T.
        starts: First step :math:`t_i` of each piece; 0 for the first piece.
        scales: Inverse length :math:`s_i` of each piece.
        coefficients: Coefficients :math:`c_0 \dots c_3`, one row each.
    """

    total_steps: int
    starts: Int32Array
    scales: Float32Array
    coefficients: Float32Array

    @property
    def nbytes(self) -> int:
        """Memory of the three arrays, in bytes."""
        return int(self.starts.nbytes + self.scales.nbytes + self.coefficients.nbytes)


def evaluate(segments: Segments, step: Any, xp: Any) -> Any:
    """The rates at ``step``, with any array library.

    A step before the first one gets the first rate, a step beyond the last one the last rate: a traced step cannot
    raise an error.

    Args:
        segments: Pieces from :func:`segments_of`.
        step: Step in 0 … T-1, or an array of steps; may be traced.
        xp: Array library: ``numpy``, ``jax.numpy`` or ``keras.ops``.

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
    """Compile ``schedule`` to cubic pieces; the cost grows with their number and with log T.

    Each smooth part of the schedule is halved until the cubic through four of its rates agrees with all the others
    that are checked. A piece of one step always agrees.

    Args:
        schedule: Schedule to compile.
        scale: Number by which all rates are multiplied before they are rounded.

    Raises:
        ValueError: The schedule has more steps than int32 can count, or too many jumps.

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
    rounded = (scale * coefficients).astype(np.float32)
    keep = ~_repeats(rounded)
    return Segments(
        schedule.total_steps,
        starts[keep].astype(np.int32),
        (1 / lengths[keep]).astype(np.float32),
        rounded[:, keep],
    )


def breaks(schedule: Schedule) -> IntArray:
    """Step 0, every step at which a new smooth piece of ``schedule`` starts, and the last step.

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
    """Starts, lengths and coefficients of accurate cubics that together cover the given pieces."""
    done: list[tuple[IntArray, IntArray, Array]] = []
    while len(starts):
        coefficients, good = _fit(schedule, starts, ends - starts)
        done.append((starts[good], (ends - starts)[good], coefficients[:, good]))
        starts, ends = _halves(starts[~good], ends[~good])
    begin, lengths, cubics = (np.concatenate(columns, axis=-1) for columns in zip(*done, strict=True))
    order = np.argsort(begin)
    return begin[order], lengths[order], cubics[:, order]


def _fit(schedule: Schedule, starts: IntArray, lengths: IntArray) -> tuple[Array, BoolArray]:
    """The cubic of every piece, and whether it is accurate enough."""
    offsets = np.rint(np.multiply.outer(np.linspace(0, 1, NUM_CHECKS), lengths - 1)).astype(np.int64)
    rates = schedule(starts + offsets)
    coefficients = np.zeros((4, len(starts)))
    coefficients[0] = rates[0]
    curved = (rates != rates[0]).any(axis=0)
    long = curved & (lengths > len(NODES))
    coefficients[1:, long] = _through(schedule, starts[long], lengths[long])
    c0, c1, c2, c3 = coefficients
    u = offsets / lengths
    misses = np.abs(c0 + u * (c1 + u * (c2 + u * c3)) - rates)
    bend, level = np.abs(coefficients[1:]).sum(axis=0), np.abs(rates).min(axis=0)
    good = (misses <= np.maximum(TOLERANCE * np.abs(rates), SMALLEST)).all(axis=0)
    return coefficients, good & (bend <= np.maximum(BEND * level, SMALLEST))


def _through(schedule: Schedule, starts: IntArray, lengths: IntArray) -> Array:
    """Coefficients c_1 … c_3 of the cubic through the rates at the start and at the nodes."""
    nodes = np.rint(np.multiply.outer(NODES, lengths - 1)).astype(np.int64)
    powers = np.power.outer((nodes / lengths).T, np.arange(1, 4))
    rises = (schedule(starts + nodes) - schedule(starts)).T
    return np.asarray(np.linalg.solve(powers, rises[..., None])[..., 0].T)


def _repeats(coefficients: Float32Array) -> BoolArray:
    """Whether each piece is constant and continues the rate of a constant piece before it."""
    flat = (coefficients[1:] == 0).all(axis=0)
    return np.append(False, flat[1:] & flat[:-1] & (coefficients[0, 1:] == coefficients[0, :-1]))


def _require_few(schedule: Schedule, count: int) -> None:
    if count > MAX_BREAKS:
        remedy = "Use a smooth decay such as exponential for a rate that changes this often."
        _check.refuse("segments_of", "schedule", f"of at most {MAX_BREAKS:,} pieces", f"{schedule!r}", remedy)
