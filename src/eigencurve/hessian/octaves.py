"""Shares of the eigenvalues per octave, with error bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eigencurve._arrays import Array, frozen
from eigencurve.spectrum.groups import group, octave_index
from eigencurve.spectrum.measurement import OctaveShares
from eigencurve.spectrum.spectrum import Spectrum, prepare


def octave_shares(
    spectrum: Spectrum, probes: Sequence[Spectrum], earlier: Sequence[Spectrum], weight_decay: float, dim: int
) -> OctaveShares:
    r"""Share of each octave, with a standard error.

    A probe that is uniform on the sphere sees a group of share s with a beta distribution of variance

    .. math:: \frac{2 s (1 - s)}{d + 2}.

    The mean of n probes has 1/n of that variance, or the observed variance of the probes if it is larger. The squared
    change over the last quarter of the steps is added to the variance.

    Args:
        spectrum: Estimated spectrum, the mean of ``probes``.
        probes: Estimate of each probe.
        earlier: Estimate of each probe after three quarters of its steps; empty if the probes are exact.
        weight_decay: Weight decay that the spectra are prepared with.
        dim: Dimension d.
    """
    groups = group(prepare(spectrum, weight_decay), beta=2.0)
    count = int(groups.index[-1]) + 1
    lowest = float(groups.lower[0]) / 2.0 ** float(groups.index[0])
    mean = _shares(spectrum, weight_decay, lowest, count)
    each = np.array([_shares(probe, weight_decay, lowest, count) for probe in probes])
    variance = 2 * mean * (1 - mean) / (dim + 2) / len(probes)
    if len(probes) > 1:
        variance = np.maximum(variance, each.var(axis=0, ddof=1) / len(probes))
    if earlier:
        before = np.mean([_shares(probe, weight_decay, lowest, count) for probe in earlier], axis=0)
        variance = variance + (mean - before) ** 2
    used = groups.index
    return OctaveShares(used, groups.lower, frozen(mean[used]), frozen(np.sqrt(variance[used])))


def _shares(spectrum: Spectrum, weight_decay: float, lowest: float, count: int) -> Array:
    heights = np.maximum(np.abs(spectrum.eigenvalues) + weight_decay, lowest)
    octave = np.minimum(octave_index(heights, lowest), count - 1)
    return np.asarray(np.bincount(octave, weights=spectrum.weights, minlength=count), dtype=np.float64)
