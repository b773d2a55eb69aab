"""Shares of the eigenvalues per octave, with error bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eigencurve._arrays import Array, IntArray, frozen
from eigencurve.spectrum.groups import group, octave_index
from eigencurve.spectrum.octaves import Octaves
from eigencurve.spectrum.quadrature import Sharpened
from eigencurve.spectrum.spectrum import Spectrum, magnitudes

# Part of the change over the last quarter of the steps that counts as an error. Chosen on 100 random matrices so that
# 68 to 80 % of the octaves are within one standard error.
CHANGE = 0.5


def octave_shares(
    spectrum: Spectrum, probes: Sequence[Sharpened], earlier: Sequence[Spectrum], weight_decay: float, dim: int
) -> Octaves:
    r"""Share of each octave, with a standard error.

    Counted eigenvalues and known zeros have no sampling error. With n of them, let R = 1 - n/d be the share of the
    d - n others. A probe that is uniform on the sphere sees a group of share r among them with a beta distribution of
    variance

    .. math:: R^2\, \frac{2 f (1 - f)}{d - n + 2}, \qquad f = r / R.

    The mean of n probes has 1/n of that variance, or the observed variance of the probes if it is larger. Half the
    change over the last quarter of the steps is added, squared, to the variance.

    Args:
        spectrum: Estimated spectrum, the mean of ``probes``.
        probes: Estimate of each probe.
        earlier: Estimate of each probe after three quarters of its steps; empty if the probes are exact.
        weight_decay: Weight decay that the spectra are prepared with.
        dim: Dimension d.
    """
    groups = group(magnitudes(spectrum, weight_decay), beta=2.0)
    count = int(groups.index[-1]) + 1
    lowest = float(groups.lower[0]) / 2.0 ** float(groups.index[0])
    mean = _shares(spectrum, weight_decay, lowest, count)
    each = np.array([_shares(probe.spectrum, weight_decay, lowest, count) for probe in probes])
    variances = [
        _sampling_variance(shares, _certain(probe, weight_decay, lowest, count), dim)
        for shares, probe in zip(each, probes, strict=True)
    ]
    variance = np.sum(variances, axis=0) / len(probes) ** 2
    if len(probes) > 1:
        variance = np.maximum(variance, each.var(axis=0, ddof=1) / len(probes))
    if earlier:
        before = np.mean([_shares(probe, weight_decay, lowest, count) for probe in earlier], axis=0)
        variance = variance + (CHANGE * (mean - before)) ** 2
    used = groups.index
    error = frozen(np.sqrt(variance[used]))
    return Octaves("share", used, groups.lower, frozen(mean[used]), error, weight_decay)


def _certain(probe: Sharpened, weight_decay: float, lowest: float, count: int) -> IntArray:
    """The number of eigenvalues in each octave that have no sampling error."""
    counted = np.bincount(_octaves_of(probe.counted, weight_decay, lowest, count), minlength=count)
    counted[_octaves_of(np.zeros(1), weight_decay, lowest, count)] += probe.num_zeros
    return counted


def _sampling_variance(shares: Array, certain: IntArray, dim: int) -> Array:
    """Variance of the shares of one probe, given the number of eigenvalues per octave without sampling error."""
    rest = shares - certain / dim
    total, left = 1 - certain.sum() / dim, dim - certain.sum()
    fraction = np.clip(rest / total, 0.0, 1.0) if left else np.zeros_like(rest)
    return np.asarray(total**2 * 2 * fraction * (1 - fraction) / (left + 2))


def _shares(spectrum: Spectrum, weight_decay: float, lowest: float, count: int) -> Array:
    octaves = _octaves_of(spectrum.eigenvalues, weight_decay, lowest, count)
    return np.asarray(np.bincount(octaves, weights=spectrum.weights, minlength=count), dtype=np.float64)


def _octaves_of(eigenvalues: Array, weight_decay: float, lowest: float, count: int) -> IntArray:
    heights = np.maximum(np.abs(eigenvalues) + weight_decay, lowest)
    return np.minimum(octave_index(heights, lowest), count - 1)
