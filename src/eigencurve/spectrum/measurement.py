"""A record of how a spectrum was measured, with error bars, stored in the same file as the spectrum."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eigencurve._arrays import Array, frozen
from eigencurve._moved import renamed_attribute
from eigencurve.spectrum.octaves import Octaves, finite_vector, octaves_from_fields

REASONS = ("settled", "num_steps", "exact")
# A spectrum whose schedule still changed by more than this has not settled.
UNSETTLED = 0.05
# Names in files that differ from those of the attributes.
NAMES_IN_FILES = {
    "weights": "node_weights", "schedule_change": "moved", "error_between_probes": "across",
    "distance_between_probes": "between",
}  # fmt: skip


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
    doubt = renamed_attribute("doubt", "warning")

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
        along, across = (
            f"{error:.2%}" if math.isfinite(error) else "unknown"
            for error in (self.schedule_change, self.error_between_probes)
        )
        return f"along one probe {along}, across probes {across}"

    @property
    def why(self) -> str:
        """The reason for stopping, as a sentence."""
        if self.reason == "settled":
            return f"the schedule changed by {self.schedule_change:.2%} over the last quarter of the steps"
        if self.reason == "exact":
            return "the Krylov space was exhausted, so every eigenvalue that the probe can see was found"
        if math.isinf(self.schedule_change):
            return "all steps were used; too few to tell how much the schedule still changes"
        return f"all steps were used; the schedule still changed by {self.schedule_change:.2%} over the last quarter"

    @property
    def warning(self) -> str:
        """A warning with its remedy if the spectrum has not settled, else an empty string."""
        if self.reason != "num_steps" or self.schedule_change <= UNSETTLED:
            return ""
        is_known = math.isfinite(self.schedule_change)
        change = f"the schedule still moved by {100 * self.schedule_change:.0f} %" if is_known else "too few to tell"
        return f"The spectrum has not settled ({self.num_products} products, {change}): measure it with more steps."

    @property
    def summary(self) -> str:
        """How the spectrum was measured, without the shares of the octaves."""
        duration = f" in {self.seconds:.1f} s" if self.seconds else ""
        lines = [
            f"in the metric of {self.preconditioner}: P^(-1/2) H P^(-1/2)" if self.preconditioner else "",
            f"{self.num_products} products{duration}, {self.num_distinct} distinct nodes",
            f"stopped ({self.reason}): {self.why}",
            f"{self.num_unused:,} parameters without effect on the loss" if self.num_unused else "",
            "" if math.isnan(self.error_between_probes) else self._sampling,
        ]
        return "\n".join(line for line in lines if line)

    @property
    def _sampling(self) -> str:
        counted = f"{len(self.counted)} eigenvalues counted one by one; " if len(self.counted) else ""
        another = "another probe" if self.num_probes == 1 else f"another {self.num_probes} probes"
        distance = self.distance_between_probes
        measured = "" if math.isnan(distance) else f"; single probes differ by up to {distance:.2%}"
        return f"{counted}{another} would change the schedule by about {self.error_between_probes:.2%}{measured}"

    def __str__(self) -> str:
        return f"{self.summary}\nshare per octave of |lambda| + {self.weight_decay:g}\n{self.octaves}"

    def __repr__(self) -> str:
        probes = f", {self.num_probes} probes" if self.num_probes > 1 else ""
        counted = f", {len(self.counted)} counted" if len(self.counted) else ""
        return f"{type(self).__name__}({self.num_products} products{probes}, {self.reason}{counted}; {self.errors})"


def to_fields(record: MeasurementRecord) -> dict[str, Any]:
    """The record as flat arrays, numbers and strings; -1 for a number that is NaN or infinite, which JSON lacks."""
    fields = {f.name: getattr(record, f.name) for f in dataclasses.fields(MeasurementRecord) if f.name != "octaves"}
    for name in ("alphas", "betas"):
        parts = fields[name]
        fields |= {name: np.concatenate(parts), f"num_{name}": np.array([len(part) for part in parts])}
    for name in ("schedule_change", "error_between_probes", "distance_between_probes"):
        fields[name] = fields[name] if math.isfinite(fields[name]) else -1.0
    return {NAMES_IN_FILES.get(name, name): value for name, value in fields.items()} | record.octaves.fields()


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


def _restored(value: Any, unknown: float) -> float:
    number = float(value)
    return number if number >= 0 else unknown


def _parts(values: Any, lengths: Any) -> tuple[Array, ...]:
    ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
    array = finite_vector(values)
    if len(ends) == 0 or ends[-1] != len(array):
        raise ValueError("the lengths of the tridiagonals do not add up to the number of their entries")
    return tuple(frozen(part) for part in np.split(array, ends[:-1]))
