"""StartEstimate: how far from the minimum a run starts, in each octave of a Hessian's spectrum."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve._arrays import Array, IntArray
from eigencurve.spectrum.noise import octave_columns
from eigencurve.spectrum.octaves import nearest_octave

COLUMNS = ("index", "lower", "num_eigenvalues", "mass", "level", "error")
SOURCES = ("displacement", "gradient")


@dataclass(frozen=True, eq=False)
class OctaveStart:
    r"""Initial error per octave :math:`[\mu 2^i, \mu 2^{i+1})` of |λ| + weight decay.

    Attributes:
        index: Index i of each octave.
        lower: Lower edge of each octave.
        num_eigenvalues: Number of eigenvalues in each octave.
        mass: Sum of λ_j Δ_j² over the eigenvalues of each octave, with λ_j = |λ| + weight decay.
        level: Mean of λ_j Δ_j² over the eigenvalues of each octave.
        error: Standard error of ``level``.
    """

    index: IntArray
    lower: Array
    num_eigenvalues: Array
    mass: Array
    level: Array
    error: Array

    def __str__(self) -> str:
        rows = zip(self.index, self.lower, self.num_eigenvalues, self.level, self.error, strict=True)
        return "\n".join(
            f"  {i:>3}  from {low:<9.3g} {num:>11.4g} eigenvalues  error {level:>9.3e} +- {error:.1e}"
            for i, low, num, level, error in rows
        )

    def __repr__(self) -> str:
        return f"OctaveStart({len(self.index)} octaves from {self.lower[0]:.4g} to {self.lower[-1]:.4g})"


@dataclass(frozen=True, eq=False, kw_only=True)
class StartEstimate:
    """The measured initial error of a run; ``print`` shows a summary.

    Pass it as ``NoisyQuadratic(prepared, initial_error=start)``.

    Attributes:
        octaves: Initial error λ_j Δ_j² per octave.
        loss: Excess loss of the start on the quadratic, half the sum of all λ_j Δ_j².
        source: ``"displacement"`` or ``"gradient"``: what the error was measured from.
        weight_decay: Weight decay in the octaves' |λ| + weight decay.
        num_products: Number of Hessian-vector products.
        seconds: Duration of the measurement.
    """

    octaves: OctaveStart
    loss: float
    source: str
    weight_decay: float
    num_products: int
    seconds: float

    def errors(self, eigenvalues: Array) -> Array:
        """Initial error for each eigenvalue of a spectrum prepared with ``weight_decay``.

        It is constant within an octave. An eigenvalue outside the measured octaves gets that of the nearest one.
        """
        return np.asarray(self.octaves.level[nearest_octave(np.asarray(eigenvalues), self.octaves.lower)])

    def __str__(self) -> str:
        return (
            f"{self.num_products} products in {self.seconds:.1f} s, from the {self.source}\n"
            f"excess loss of the start on the quadratic: {self.loss:.3e}\n"
            f"initial error per octave of |lambda| + {self.weight_decay:g}\n{self.octaves}"
        )

    def __repr__(self) -> str:
        return f"StartEstimate(loss={self.loss:.4g}, from the {self.source}, {len(self.octaves.index)} octaves)"


def start_fields(start: StartEstimate) -> dict[str, Any]:
    """The estimate as flat arrays, numbers and strings."""
    values = {f.name: getattr(start, f.name) for f in dataclasses.fields(StartEstimate) if f.name != "octaves"}
    return values | {f"octave_{name}": getattr(start.octaves, name) for name in COLUMNS}


def start_from_fields(fields: Mapping[str, Any]) -> StartEstimate:
    """Restore the estimate from the fields of :func:`start_fields`.

    Raises:
        KeyError, TypeError, ValueError: A field is missing or invalid.
    """
    source = str(fields["source"])
    if source not in SOURCES:
        raise ValueError(f"'source' must be one of {', '.join(SOURCES)}, got {source!r}")
    columns = octave_columns(fields, COLUMNS)
    return StartEstimate(
        octaves=OctaveStart(columns[0].astype(np.int64), *columns[1:]),
        loss=float(fields["loss"]),
        source=source,
        weight_decay=float(fields["weight_decay"]),
        num_products=int(fields["num_products"]),
        seconds=float(fields["seconds"]),
    )
