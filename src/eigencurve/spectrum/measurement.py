"""How a spectrum was measured: error bars and the numbers behind them, kept beside it in its file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve._arrays import Array, IntArray, frozen

REASONS = ("settled", "num_steps", "exact")


@dataclass(frozen=True, eq=False)
class OctaveShares:
    r"""The share of |λ| + weight decay in :math:`[\mu 2^i, \mu 2^{i+1})`, and its standard error.

    Attributes:
        index: i, of the non-empty octaves.
        lower: :math:`\mu 2^i`.
        share: of the eigenvalues; sums to 1.
        error: standard error, from the probes and from the steps together.
    """

    index: IntArray
    lower: Array
    share: Array
    error: Array

    def __str__(self) -> str:
        rows = zip(self.index, self.lower, self.share, self.error, strict=True)
        return "\n".join(f"  {i:>3}  from {low:<9.3g} {share:>9.3e} +- {error:.1e}" for i, low, share, error in rows)


@dataclass(frozen=True, eq=False)
class MeasurementRecord:
    """What is known of a spectrum beside its eigenvalues; ``print`` shows a summary.

    Attributes:
        octaves: the share of every octave of |λ| + weight decay, with its standard error.
        nodes, weights: the Gauss nodes of all probes, as they came.
        alphas, betas: the tridiagonal of each probe; the last beta is the residual's norm.
        num_products: of all probes.
        num_distinct: how many of the nodes are not copies of another.
        reason: why it stopped: ``"settled"``, ``"num_steps"`` or ``"exact"``.
        moved: by how much the schedule moved over the last quarter of the steps, as the largest |ln f'/f|.
        weight_decay, total_steps: that ``octaves`` and ``moved`` are for.
        seconds: the time it took.
        made_by: the command and the versions, where they are known.
    """

    octaves: OctaveShares
    nodes: Array
    weights: Array
    alphas: tuple[Array, ...]
    betas: tuple[Array, ...]
    num_products: int
    num_distinct: int
    reason: str
    moved: float
    weight_decay: float
    total_steps: int
    seconds: float
    made_by: str = ""

    @property
    def why(self) -> str:
        """Why it stopped, in a sentence."""
        return {
            "settled": f"the schedule moved by {self.moved:.2%} over the last quarter of the steps",
            "num_steps": f"the steps were used up; the schedule still moved by {self.moved:.2%} over the last quarter",
            "exact": "the Krylov space was exhausted: every eigenvalue that the probe sees was found",
        }[self.reason]

    def __str__(self) -> str:
        return (
            f"{self.num_products} products in {self.seconds:.1f} s, {self.num_distinct} distinct nodes\n"
            f"stopped ({self.reason}): {self.why}\n"
            f"share per octave of |lambda| + {self.weight_decay:g}\n{self.octaves}"
        )


def to_fields(measurement: MeasurementRecord) -> dict[str, Any]:
    """Flat arrays, numbers and strings; the tridiagonals of all probes one after the other."""
    octaves = measurement.octaves
    return {
        "octave_index": octaves.index, "octave_lower": octaves.lower, "octave_share": octaves.share,
        "octave_error": octaves.error, "nodes": measurement.nodes, "node_weights": measurement.weights,
        "alphas": np.concatenate(measurement.alphas), "betas": np.concatenate(measurement.betas),
        "num_alphas": np.array([len(part) for part in measurement.alphas]),
        "num_betas": np.array([len(part) for part in measurement.betas]),
        "num_products": measurement.num_products, "num_distinct": measurement.num_distinct,
        "reason": measurement.reason, "moved": measurement.moved if math.isfinite(measurement.moved) else -1.0,
        "weight_decay": measurement.weight_decay, "total_steps": measurement.total_steps,
        "seconds": measurement.seconds, "made_by": measurement.made_by,
    }  # fmt: skip


def from_fields(fields: Mapping[str, Any]) -> MeasurementRecord:
    """The measurement that wrote ``fields``.

    Raises:
        KeyError, TypeError, ValueError: fields that are missing or of another kind.
    """
    reason, moved = str(fields["reason"]), float(fields["moved"])
    if reason not in REASONS:
        raise ValueError(f"'reason' must be one of {', '.join(REASONS)}, got {reason!r}")
    return MeasurementRecord(
        octaves=_octaves(fields),
        nodes=_vector(fields["nodes"]),
        weights=_vector(fields["node_weights"]),
        alphas=_parts(fields["alphas"], fields["num_alphas"]),
        betas=_parts(fields["betas"], fields["num_betas"]),
        num_products=int(fields["num_products"]),
        num_distinct=int(fields["num_distinct"]),
        reason=reason,
        moved=moved if moved >= 0 else math.inf,
        weight_decay=float(fields["weight_decay"]),
        total_steps=int(fields["total_steps"]),
        seconds=float(fields["seconds"]),
        made_by=str(fields["made_by"]),
    )


def _octaves(fields: Mapping[str, Any]) -> OctaveShares:
    columns = [_vector(fields[f"octave_{name}"]) for name in ("index", "lower", "share", "error")]
    if len({len(column) for column in columns}) > 1:
        raise ValueError("the columns of the octaves have different lengths")
    return OctaveShares(columns[0].astype(np.int64), *columns[1:])


def _vector(values: Any) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError("an array of the measurement is not a finite vector")
    return frozen(array)


def _parts(values: Any, lengths: Any) -> tuple[Array, ...]:
    ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
    array = _vector(values)
    if len(ends) == 0 or ends[-1] != len(array):
        raise ValueError("the tridiagonals of the measurement are not as long as they say")
    return tuple(frozen(part) for part in np.split(array, ends[:-1]))
