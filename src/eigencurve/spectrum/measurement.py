"""A record of how a spectrum was measured, with error bars, stored in the same file as the spectrum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eigencurve._arrays import Array, frozen
from eigencurve._moved import renamed_attribute
from eigencurve.spectrum.octaves import Octaves, finite_vector, octaves_from_fields

REASONS = ("settled", "num_steps", "exact")
# A spectrum whose schedule still moved by more than this has not settled.
UNSETTLED = 0.05


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
        schedule_change: Change of the schedule over the last quarter of the steps, as the largest |ln f'/f|.
        total_steps: Number of training steps of that schedule.
        seconds: Duration of the measurement; 0 if unknown.
        made_by: Command and versions, or an empty string if unknown.
        counted: Eigenvalues that were found one by one; each has weight 1/d, without sampling error.
        error_between_probes: Typical distance between the schedules of two such measurements with other probes, as the
            largest |ln f/g|, predicted from the standard errors of the octaves; NaN if unknown.
        distance_between_probes: Largest |ln f/g| that was measured between the schedules of single probes; NaN with
            one probe.
        preconditioner: Optimizer in whose metric the spectrum was measured, such as ``"AdamW"``; empty for the Hessian
            or Gauss-Newton matrix itself.
        num_unused: Number of parameters that the loss does not depend on; their eigenvalues are exactly zero.
    """

    octaves: Octaves
    nodes: Array
    weights: Array
    alphas: tuple[Array, ...]
    betas: tuple[Array, ...]
    num_products: int
    num_distinct: int
    reason: str
    schedule_change: float
    total_steps: int
    seconds: float
    made_by: str = ""
    counted: Array = field(default_factory=lambda: frozen(np.zeros(0)))
    error_between_probes: float = math.nan
    distance_between_probes: float = math.nan
    preconditioner: str = ""
    num_unused: int = 0

    moved = renamed_attribute("moved", "schedule_change")
    across = renamed_attribute("across", "error_between_probes")
    between = renamed_attribute("between", "distance_between_probes")

    @property
    def weight_decay(self) -> float:
        """Weight decay for which the octaves and the schedule's errors hold."""
        return self.octaves.weight_decay

    @property
    def num_probes(self) -> int:
        """Number of random probes."""
        return len(self.alphas)

    @property
    def errors(self) -> str:
        """The error of the schedule along one probe and across probes, in one line."""
        along = (
            "along one probe unknown"
            if math.isinf(self.schedule_change)
            else f"along one probe {self.schedule_change:.2%}"
        )
        across = (
            "across probes unknown"
            if math.isnan(self.error_between_probes)
            else f"across probes {self.error_between_probes:.2%}"
        )
        return f"{along}, {across}"

    @property
    def why(self) -> str:
        """The reason for stopping, as a sentence."""
        return {
            "settled": f"the schedule changed by {self.schedule_change:.2%} over the last quarter of the steps",
            "num_steps": "all steps were used; "
            + (
                f"the schedule still changed by {self.schedule_change:.2%} over the last quarter"
                if math.isfinite(self.schedule_change)
                else "too few to tell how much the schedule still changes"
            ),
            "exact": "the Krylov space was exhausted, so every eigenvalue that the probe can see was found",
        }[self.reason]

    @property
    def doubt(self) -> str:
        """A warning with its remedy if the spectrum has not settled, else an empty string."""
        if self.reason != "num_steps" or self.schedule_change <= UNSETTLED:
            return ""
        known = math.isfinite(self.schedule_change)
        moved = f"the schedule still moved by {100 * self.schedule_change:.0f} %" if known else "too few to tell"
        return f"The spectrum has not settled ({self.num_products} products, {moved}): measure it with more steps."

    @property
    def _sampling(self) -> str:
        if math.isnan(self.error_between_probes):
            return ""
        counted = f"{len(self.counted)} eigenvalues counted one by one; " if len(self.counted) else ""
        another = "another probe" if self.num_probes == 1 else f"another {self.num_probes} probes"
        between = (
            ""
            if math.isnan(self.distance_between_probes)
            else f"; single probes differ by up to {self.distance_between_probes:.2%}"
        )
        return f"{counted}{another} would change the schedule by about {self.error_between_probes:.2%}{between}\n"

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
    alphas, betas = measurement.alphas, measurement.betas
    return measurement.octaves.fields() | {
        "nodes": measurement.nodes, "node_weights": measurement.weights,
        "alphas": np.concatenate(alphas), "betas": np.concatenate(betas),
        "num_alphas": np.array([len(part) for part in alphas]), "num_betas": np.array([len(part) for part in betas]),
        "num_products": measurement.num_products, "num_distinct": measurement.num_distinct,
        "reason": measurement.reason, "moved": _stored(measurement.schedule_change),
        "total_steps": measurement.total_steps, "seconds": measurement.seconds, "made_by": measurement.made_by,
        "counted": measurement.counted, "across": _stored(measurement.error_between_probes),
        "between": _stored(measurement.distance_between_probes),
        "preconditioner": measurement.preconditioner, "num_unused": measurement.num_unused,
    }  # fmt: skip


def from_fields(fields: Mapping[str, Any]) -> MeasurementRecord:
    """Restore the record from the fields of :func:`to_fields`.

    Raises:
        KeyError, TypeError, ValueError: A field is missing or invalid.
    """
    reason = str(fields["reason"])
    if reason not in REASONS:
        raise ValueError(f"'reason' must be one of {', '.join(REASONS)}, got {reason!r}")
    return MeasurementRecord(
        octaves=octaves_from_fields(fields, "share"),
        nodes=finite_vector(fields["nodes"]),
        weights=finite_vector(fields["node_weights"]),
        alphas=_parts(fields["alphas"], fields["num_alphas"]),
        betas=_parts(fields["betas"], fields["num_betas"]),
        num_products=int(fields["num_products"]),
        num_distinct=int(fields["num_distinct"]),
        reason=reason,
        schedule_change=_restored(fields["moved"], math.inf),
        total_steps=int(fields["total_steps"]),
        seconds=float(fields["seconds"]),
        made_by=str(fields["made_by"]),
        counted=finite_vector(fields.get("counted", np.zeros(0))),  # files of version 0.1 have none of the last five
        error_between_probes=_restored(fields.get("across", -1.0), math.nan),
        distance_between_probes=_restored(fields.get("between", -1.0), math.nan),
        preconditioner=str(fields.get("preconditioner", "")),
        num_unused=int(fields.get("num_unused", 0)),
    )


def _stored(value: float) -> float:
    """A number, or -1 if it is unknown; JSON has neither NaN nor infinity."""
    return value if math.isfinite(value) else -1.0


def _restored(value: Any, unknown: float) -> float:
    number = float(value)
    return number if number >= 0 else unknown


def _parts(values: Any, lengths: Any) -> tuple[Array, ...]:
    ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
    array = finite_vector(values)
    if len(ends) == 0 or ends[-1] != len(array):
        raise ValueError("the lengths of the tridiagonals do not add up to the number of their entries")
    return tuple(frozen(part) for part in np.split(array, ends[:-1]))
