"""A printable description of a spectrum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eigencurve._arrays import Array, frozen
from eigencurve.spectrum.groups import Groups, extra_term, group
from eigencurve.spectrum.likelihood import exponent_and_error

if TYPE_CHECKING:
    from eigencurve.spectrum.octaves import Octaves
    from eigencurve.spectrum.spectrum import Spectrum

BAR_WIDTH = 40


@dataclass(frozen=True, eq=False)
class SpectrumDescription:
    """The properties of a spectrum that determine a schedule; ``print`` shows them as a table.

    Attributes:
        dim: Number of parameters d, or None if unknown.
        num_nodes: Number of eigenvalues that represent the spectrum.
        mu, L, kappa: Smallest and largest eigenvalue, and their ratio.
        fraction_negative: Share of negative eigenvalues before :func:`prepare`.
        octaves: Non-empty groups for β = 2.
        extra_term: (Σ √s_i)² / d.
        errors: Standard error of the share of each octave, if it was measured.
        exponent, exponent_error: Maximum-likelihood exponent of a power law and its standard error; None if nearly
            all eigenvalues are equal.
    """

    dim: int | None
    num_nodes: int
    mu: float
    L: float
    kappa: float
    fraction_negative: float
    octaves: Groups
    extra_term: float
    exponent: float | None
    exponent_error: float | None
    errors: Array | None = None

    def __str__(self) -> str:
        return "\n".join([*self._facts(), "share per octave [mu 2^i, mu 2^(i+1))", *self._bars()])

    def _facts(self) -> list[str]:
        law = "none (nearly all eigenvalues are equal)"
        if self.exponent is not None:
            law = f"{self.exponent:.4g} +- {self.exponent_error:.2g}"
        rows = [
            ("parameters d", "unknown" if self.dim is None else f"{self.dim:,}"),
            ("nodes", f"{self.num_nodes:,}"),
            ("smallest mu", f"{self.mu:.4g}"),
            ("largest L", f"{self.L:.4g}"),
            ("condition kappa", f"{self.kappa:.4g}  (log2 {math.log2(self.kappa):.2f})"),
            ("fraction negative", f"{self.fraction_negative:.2%}"),
            ("extra term", f"{self.extra_term:.2f}"),
            ("power-law exponent", law),
        ]
        return [f"{name:<19} {value}" for name, value in rows]

    def _bars(self) -> list[str]:
        octaves, largest = self.octaves, float(self.octaves.share.max())
        errors = [""] * len(octaves.index) if self.errors is None else [f" +- {error:.1e}" for error in self.errors]
        return [
            f"  {i:>3}  from {lower:<9.3g} {share:>9.3e}{error}  "
            + "#" * max(1, round(BAR_WIDTH * math.sqrt(share / largest)))
            for i, lower, share, error in zip(octaves.index, octaves.lower, octaves.share, errors, strict=True)
        ]

    def __repr__(self) -> str:
        return (
            f"SpectrumDescription({self.num_nodes:,} nodes, kappa={self.kappa:.4g}, {len(self.octaves.index)} octaves)"
        )


def describe_spectrum(
    prepared: Spectrum, fraction_negative: float, measured: Octaves | None = None
) -> SpectrumDescription:
    """Describe a positive spectrum; the bars of the printed table are proportional to √s_i.

    Args:
        prepared: Spectrum.
        fraction_negative: Share of negative eigenvalues before it was prepared.
        measured: Octave shares with their standard errors, if they were measured for the same weight decay.
    """
    octaves = group(prepared, beta=2.0)
    errors = None
    if measured is not None:
        error_of = dict(zip(measured.index.tolist(), measured.error.tolist(), strict=True))
        errors = frozen(np.array([error_of.get(i, 0.0) for i in octaves.index.tolist()]))
    count = len(prepared) if prepared.dim is None else prepared.dim
    exponent, exponent_error = exponent_and_error(prepared.eigenvalues, prepared.weights, count) or (None, None)
    return SpectrumDescription(
        dim=prepared.dim,
        num_nodes=len(prepared),
        mu=prepared.mu,
        L=prepared.L,
        kappa=prepared.kappa,
        fraction_negative=fraction_negative,
        octaves=octaves,
        extra_term=extra_term(prepared, beta=2.0),
        exponent=exponent,
        exponent_error=exponent_error,
        errors=errors,
    )
