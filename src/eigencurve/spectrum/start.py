"""StartEstimate: how far from the minimum a run starts, in each octave of a Hessian's spectrum."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eigencurve._arrays import Array
from eigencurve.spectrum.octaves import Octaves, octaves_from_fields

COLUMNS = ("num_eigenvalues", "mass")
SOURCES = ("displacement", "gradient")


@dataclass(frozen=True, eq=False, kw_only=True)
class StartEstimate:
    """The measured initial error of a run; ``print`` shows a summary.

    Pass it as ``NoisyQuadratic(prepared, initial_error=start)``.

    Attributes:
        octaves: Mean initial error λ_j Δ_j² of the eigenvalues in each octave, with standard errors.
        loss: Excess loss of the start on the quadratic, half the sum of all λ_j Δ_j².
        source: ``"displacement"`` or ``"gradient"``, the vector that the error was measured from.
        num_products: Number of Hessian-vector products.
        seconds: Duration of the measurement.
    """

    octaves: Octaves
    loss: float
    source: str
    num_products: int
    seconds: float

    @property
    def weight_decay(self) -> float:
        """Weight decay in the octaves' |λ| + weight decay."""
        return self.octaves.weight_decay

    def errors(self, eigenvalues: Array) -> Array:
        """Initial error for each eigenvalue of a spectrum prepared with ``weight_decay``; see :meth:`Octaves.at`."""
        return self.octaves.at(eigenvalues)

    def __str__(self) -> str:
        return (
            f"{self.num_products} products in {self.seconds:.1f} s, from the {self.source}\n"
            f"excess loss of the start on the quadratic: {self.loss:.3e}\n"
            f"initial error per octave of |lambda| + {self.weight_decay:g}\n{self.octaves}"
        )

    def __repr__(self) -> str:
        return f"StartEstimate(loss={self.loss:.4g}, from the {self.source}, {len(self.octaves)} octaves)"


def start_fields(start: StartEstimate) -> dict[str, Any]:
    """The estimate as flat arrays, numbers and strings."""
    values = {f.name: getattr(start, f.name) for f in dataclasses.fields(StartEstimate) if f.name != "octaves"}
    return values | start.octaves.fields()


def start_from_fields(fields: Mapping[str, Any]) -> StartEstimate:
    """Restore the estimate from the fields of :func:`start_fields`.

    Raises:
        KeyError, TypeError, ValueError: A field is missing or invalid.
    """
    source = str(fields["source"])
    if source not in SOURCES:
        raise ValueError(f"'source' must be one of {', '.join(SOURCES)}, got {source!r}")
    return StartEstimate(
        octaves=octaves_from_fields(fields, "level", COLUMNS),
        loss=float(fields["loss"]),
        source=source,
        num_products=int(fields["num_products"]),
        seconds=float(fields["seconds"]),
    )
