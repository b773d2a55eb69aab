"""A record of how a spectrum was measured, with error bars, stored in the same file as the spectrum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eigencurve._arrays import Array, IntArray, frozen

REASONS = ("settled", "num_steps", "exact")
# A spectrum whose schedule still moved by more than this has not settled.
UNSETTLED = 0.05


@dataclass(frozen=True, eq=False)
class OctaveShares:
    r"""The share of |λ| + weight decay in :math:`[\mu 2^i, \mu 2^{i+1})`, and its standard error.

    Attributes:
        index: Index i of each non-empty octave.
        lower: Lower edge :math:`\mu 2^i` of each octave.
        share: Share of the eigenvalues in each octave; sums to 1.
        error: Standard error of each share, from the number of probes and the number of steps.
    """

    index: IntArray
    lower: Array
    share: Array
    error: Array

    def __str__(self) -> str:
        rows = zip(self.index, self.lower, self.share, self.error, strict=True)
        return "\n".join(f"  {i:>3}  from {low:<9.3g} {share:>9.3e} +- {error:.1e}" for i, low, share, error in rows)

    def __repr__(self) -> str:
        return f"OctaveShares({len(self.index)} octaves from {self.lower[0]:.4g} to {self.lower[-1]:.4g})"


@dataclass(frozen=True, eq=False)
class MeasurementRecord:
    """How a spectrum was measured; ``print`` shows a summary.

    Attributes:
        octaves: Share of each octave of |λ| + weight decay, with its standard error.
        nodes, weights: Raw Gauss nodes and weights of all probes.
        alphas, betas: Tridiagonal matrix of each probe, on the parameters that are used; the last beta is the norm of
            the residual.
        num_products: Number of Hessian-vector products of all probes.
        num_distinct: Number of nodes that are not copies of another node.
        reason: Reason for stopping: ``"settled"``, ``"num_steps"`` or ``"exact"``.
        moved: Change of the schedule over the last quarter of the steps, as the largest |ln f'/f|.
        weight_decay, total_steps: Weight decay and number of training steps for which ``octaves``, ``moved`` and
            ``across`` hold.
        seconds: Duration of the measurement; 0 if unknown.
        made_by: Command and versions, or an empty string if unknown.
        counted: Eigenvalues that were found one by one; each has weight 1/d, without sampling error.
        across: Typical distance between the schedules of two such measurements with other probes, as the largest
            |ln f/g|, predicted from the standard errors of the octaves; NaN if unknown.
        between: Largest |ln f/g| between the schedules of single probes of this measurement; NaN with one probe.
        preconditioner: Optimizer in whose metric the spectrum was measured, such as ``"AdamW"``; empty for the Hessian
            or Gauss-Newton matrix itself.
        num_unused: Number of parameters that the loss does not depend on; their eigenvalues are exactly zero.
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
    counted: Array = field(default_factory=lambda: frozen(np.zeros(0)))
    across: float = math.nan
    between: float = math.nan
    preconditioner: str = ""
    num_unused: int = 0

    @property
    def num_probes(self) -> int:
        """Number of random probes."""
        return len(self.alphas)

    @property
    def errors(self) -> str:
        """The error of the schedule along one probe and across probes, in one line."""
        along = "along one probe unknown" if math.isinf(self.moved) else f"along one probe {self.moved:.2%}"
        across = "across probes unknown" if math.isnan(self.across) else f"across probes {self.across:.2%}"
        return f"{along}, {across}"

    @property
    def why(self) -> str:
        """The reason for stopping, as a sentence."""
        return {
            "settled": f"the schedule changed by {self.moved:.2%} over the last quarter of the steps",
            "num_steps": "all steps were used; "
            + (
                f"the schedule still changed by {self.moved:.2%} over the last quarter"
                if math.isfinite(self.moved)
                else "too few to tell how much the schedule still changes"
            ),
            "exact": "the Krylov space was exhausted, so every eigenvalue that the probe can see was found",
        }[self.reason]

    @property
    def doubt(self) -> str:
        """A warning with its remedy if the spectrum has not settled, else an empty string."""
        if self.reason != "num_steps" or self.moved <= UNSETTLED:
            return ""
        known = math.isfinite(self.moved)
        moved = f"the schedule still moved by {100 * self.moved:.0f} %" if known else "too few to tell"
        return f"The spectrum has not settled ({self.num_products} products, {moved}): measure it with more steps."

    @property
    def _sampling(self) -> str:
        if math.isnan(self.across):
            return ""
        counted = f"{len(self.counted)} eigenvalues counted one by one; " if len(self.counted) else ""
        another = "another probe" if self.num_probes == 1 else f"another {self.num_probes} probes"
        between = "" if math.isnan(self.between) else f"; single probes differ by up to {self.between:.2%}"
        return f"{counted}{another} would change the schedule by about {self.across:.2%}{between}\n"

    def __repr__(self) -> str:
        probes = f", {self.num_probes} probes" if self.num_probes > 1 else ""
        counted = f", {len(self.counted)} counted" if len(self.counted) else ""
        return f"{type(self).__name__}({self.num_products} products{probes}, {self.reason}{counted}; {self.errors})"

    @property
    def summary(self) -> str:
        """How the spectrum was measured, without the shares of the octaves."""
        duration = f" in {self.seconds:.1f} s" if self.seconds else ""
        metric = f"in the metric of {self.preconditioner}: P^(-1/2) H P^(-1/2)\n" if self.preconditioner else ""
        unused = f"{self.num_unused:,} parameters without effect on the loss\n" if self.num_unused else ""
        return (
            f"{metric}{self.num_products} products{duration}, {self.num_distinct} distinct nodes\n"
            f"stopped ({self.reason}): {self.why}\n"
            f"{unused}{self._sampling}"
        ).rstrip()

    def __str__(self) -> str:
        return f"{self.summary}\nshare per octave of |lambda| + {self.weight_decay:g}\n{self.octaves}"


def to_fields(measurement: MeasurementRecord) -> dict[str, Any]:
    """The record as flat arrays, numbers and strings, with the tridiagonals of all probes concatenated."""
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
        "seconds": measurement.seconds, "made_by": measurement.made_by, "counted": measurement.counted,
        "across": _number(measurement.across), "between": _number(measurement.between),
        "preconditioner": measurement.preconditioner, "num_unused": measurement.num_unused,
    }  # fmt: skip


def from_fields(fields: Mapping[str, Any]) -> MeasurementRecord:
    """Restore the record from the fields of :func:`to_fields`.

    Raises:
        KeyError, TypeError, ValueError: A field is missing or invalid.
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
        counted=_vector(fields.get("counted", np.zeros(0))),  # files of version 0.1 have none of the last five
        across=_known(fields.get("across", -1.0)),
        between=_known(fields.get("between", -1.0)),
        preconditioner=str(fields.get("preconditioner", "")),
        num_unused=int(fields.get("num_unused", 0)),
    )


def _octaves(fields: Mapping[str, Any]) -> OctaveShares:
    columns = [_vector(fields[f"octave_{name}"]) for name in ("index", "lower", "share", "error")]
    if len({len(column) for column in columns}) > 1:
        raise ValueError("the columns of the octaves have different lengths")
    return OctaveShares(columns[0].astype(np.int64), *columns[1:])


def _number(value: float) -> float:
    """A number, or -1 if it is unknown; JSON has no NaN."""
    return -1.0 if math.isnan(value) else value


def _known(value: Any) -> float:
    """A number that is written as -1 if it is unknown."""
    number = float(value)
    return number if number >= 0 else math.nan


def _vector(values: Any) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError("an array of the measurement is not a finite vector")
    return frozen(array)


def _parts(values: Any, lengths: Any) -> tuple[Array, ...]:
    ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
    array = _vector(values)
    if len(ends) == 0 or ends[-1] != len(array):
        raise ValueError("the lengths of the tridiagonals do not add up to the number of their entries")
    return tuple(frozen(part) for part in np.split(array, ends[:-1]))
