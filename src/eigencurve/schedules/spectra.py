"""Compare spectra: the share of each in every octave, and the distance between their schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.eigencurve import curve_of
from eigencurve.spectrum.groups import extra_term, octave_index
from eigencurve.spectrum.source import SpectrumSource
from eigencurve.spectrum.spectrum import Spectrum


@dataclass(frozen=True, eq=False)
class SpectrumComparison:
    """Several spectra on one scale of octaves.

    Attributes:
        names: Names of the spectra.
        lower: Lower edges of the octaves, starting at the smallest μ of all spectra.
        shares: Share of each octave, by name.
        kappas, extra_terms: Condition number and extra term, by name.
        distances: Largest |ln f/g| between the Eigencurve schedules of two spectra, by pair of names.
        total_steps: Number of steps of those schedules.
    """

    names: tuple[str, ...]
    lower: Array
    shares: Mapping[str, Array]
    kappas: Mapping[str, float]
    extra_terms: Mapping[str, float]
    distances: Mapping[tuple[str, str], float]
    total_steps: int


def compare_spectra(sources: Mapping[str, SpectrumSource], total_steps: int) -> SpectrumComparison:
    """Compare spectra by their octaves and by the schedules built from them.

    Args:
        sources: At least two spectra, by the name to show.
        total_steps: Number of steps T of the schedules.
    """
    if len(sources) < 2:
        _check.refuse("compare_spectra", "sources", "at least two spectra", len(sources))
    prepared = {name: source.spectrum for name, source in sources.items()}
    mu = min(spectrum.mu for spectrum in prepared.values())
    shares = {name: _octave_shares(mu, spectrum) for name, spectrum in prepared.items()}
    num = max(map(len, shares.values()))
    curves = {name: curve_of(source.prepared, total_steps, lr=1.0) for name, source in sources.items()}
    return SpectrumComparison(
        names=tuple(sources),
        lower=mu * 2.0 ** np.arange(float(num)),
        shares={name: np.pad(share, (0, num - len(share))) for name, share in shares.items()},
        kappas={name: spectrum.kappa for name, spectrum in prepared.items()},
        extra_terms={name: extra_term(spectrum) for name, spectrum in prepared.items()},
        distances={pair: log_distance(curves[pair[0]], curves[pair[1]]) for pair in combinations(curves, 2)},
        total_steps=total_steps,
    )


def log_distance(first: Schedule, second: Schedule) -> float:
    r"""The largest :math:`|\ln f(t)/g(t)|` over all steps of two schedules of equal length. 0.1 means about 10 %.

    >>> import eigencurve as ec
    >>> round(log_distance(ec.constant(10, lr=1.0), ec.constant(10, lr=2.0)), 4)
    0.6931
    """
    if first.total_steps != second.total_steps:
        _check.refuse(
            "log_distance", "second", f"of {first.total_steps} steps, like the first schedule", second.total_steps
        )
    return float(np.abs(np.log(first.values()) - np.log(second.values())).max())


def _octave_shares(mu: float, spectrum: Spectrum) -> Array:
    """The share of every octave from ``mu`` to the last one that is not empty."""
    used = spectrum.weights > 0
    return np.bincount(octave_index(spectrum.eigenvalues[used], mu), spectrum.weights[used]).astype(np.float64)
