"""How far the schedules of two random probes differ: the part of the error that more Lanczos steps do not remove."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from eigencurve._arrays import Array
from eigencurve.hessian.settling import log_curve
from eigencurve.spectrum.groups import octave_index
from eigencurve.spectrum.quadrature import Sharpened
from eigencurve.spectrum.spectrum import Spectrum

NUM_PAIRS = 15
ROUNDING = 1e-12


def probe_error(probes: Sequence[Sharpened], weight_decay: float, total_steps: int, dim: int) -> float:
    r"""Typical largest |ln f/g| between the schedules f and g of two estimates from other probes.

    With n probes, the weight of m eigenvalues in an octave is their share times a :math:`\chi^2_{nm}/(nm)` variable.
    Counted eigenvalues and known zeros have no such error. The weights of the estimate are redrawn octave by octave for
    15 pairs, and the median distance between the schedules of a pair is returned.

    Args:
        probes: Sharpened spectrum of each probe.
        weight_decay: Weight decay that the spectra are prepared with.
        total_steps: Number of steps T of the schedule.
        dim: Dimension d.
    """
    eigenvalues = np.concatenate([probe.spectrum.eigenvalues for probe in probes])
    weights = np.concatenate([probe.spectrum.weights for probe in probes]) / len(probes)
    certain = np.concatenate([_certain_weights(probe, dim) for probe in probes]) / len(probes)
    free = np.where(weights - certain > ROUNDING * weights, weights - certain, 0.0)
    heights = np.abs(eigenvalues) + weight_decay
    octaves = octave_index(heights, float(heights.min()))
    freedom = len(probes) * dim * np.bincount(octaves, free)
    rng = np.random.default_rng(0)

    def redrawn_curve() -> Array:
        factors = rng.chisquare(np.maximum(freedom, 1e-3)) / np.maximum(freedom, 1e-3)
        rest = free * factors[octaves]
        rest *= (1 - certain.sum()) / max(float(rest.sum()), np.finfo(float).tiny)
        return log_curve(Spectrum(eigenvalues, certain + rest), weight_decay, total_steps)

    return float(np.median([np.abs(redrawn_curve() - redrawn_curve()).max() for _ in range(NUM_PAIRS)]))


def _certain_weights(probe: Sharpened, dim: int) -> Array:
    """The part of each weight that has no sampling error."""
    eigenvalues, weights = probe.spectrum.eigenvalues, probe.spectrum.weights
    certain = np.where(np.isin(eigenvalues, probe.counted), weights, 0.0)
    return np.where(eigenvalues == 0, np.maximum(certain, probe.num_zeros / dim), certain)


def distance_between(probes: Sequence[Sharpened], weight_decay: float, total_steps: int) -> float:
    """Largest |ln f/g| between the schedules f and g of two single probes; NaN if there is only one.

    It is the measured counterpart of :func:`probe_error` for one probe.
    """
    if len(probes) < 2:
        return math.nan
    curves = [log_curve(probe.spectrum, weight_decay, total_steps) for probe in probes]
    return max(float(np.abs(first - second).max()) for first, second in combinations(curves, 2))
