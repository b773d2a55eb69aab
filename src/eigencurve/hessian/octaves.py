"""The share of eigenvalues in every octave, with error bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eigencurve._arrays import Array, frozen
from eigencurve.spectrum.groups import group, octave_index
from eigencurve.spectrum.measurement import OctaveShares
from eigencurve.spectrum.spectrum import Spectrum, prepare


def octave_shares(
    spectrum: Spectrum, probes: Sequence[Spectrum], shorter: Sequence[Spectrum], weight_decay: float, dim: int
) -> OctaveShares:
    r"""Shares with error bars from three sources.

    One probe, uniform on the sphere, sees a group of share s with a beta distribution of variance

    .. math:: \frac{2 s (1 - s)}{d + 2},

    which n probes divide by n; where they scatter more than that, their scatter counts. To its square comes that of the
    change that the last quarter of the steps still made.

    Args:
        spectrum: the estimate, the mean of ``probes``.
        probes: the estimate of each probe.
        shorter: the estimate of each probe from three quarters of its steps, or nothing where it was exact.
        weight_decay: that the spectra are prepared with.
        dim: d.
    """
    groups = group(prepare(spectrum, weight_decay), beta=2.0)
    count = int(groups.index[-1]) + 1
    lowest = float(groups.lower[0]) / 2.0 ** float(groups.index[0])
    mean = _shares(spectrum, weight_decay, lowest, count)
    each = np.array([_shares(probe, weight_decay, lowest, count) for probe in probes])
    variance = 2 * mean * (1 - mean) / (dim + 2) / len(probes)
    if len(probes) > 1:
        variance = np.maximum(variance, each.var(axis=0, ddof=1) / len(probes))
    if shorter:
        early = np.mean([_shares(probe, weight_decay, lowest, count) for probe in shorter], axis=0)
        variance = variance + (mean - early) ** 2
    used = groups.index
    return OctaveShares(used, groups.lower, frozen(mean[used]), frozen(np.sqrt(variance[used])))


def _shares(spectrum: Spectrum, weight_decay: float, lowest: float, count: int) -> Array:
    used = np.maximum(np.abs(spectrum.eigenvalues) + weight_decay, lowest)
    place = np.minimum(octave_index(used, lowest), count - 1)
    return np.asarray(np.bincount(place, weights=spectrum.weights, minlength=count), dtype=np.float64)
