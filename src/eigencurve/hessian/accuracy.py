"""The errors of a measured spectrum: of its schedule along one probe and between probes, and of the octaves' shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import torch

from eigencurve._arrays import Array, frozen
from eigencurve._moved import renamed_attribute
from eigencurve.hessian.lanczos import LanczosOperator, make_run, without_copies
from eigencurve.hessian.memory import MemoryPlan
from eigencurve.hessian.settings import EstimateSettings
from eigencurve.schedules.eigencurve import curve_of
from eigencurve.schedules.sampling import sampled_steps
from eigencurve.spectrum.groups import octave_index
from eigencurve.spectrum.octaves import Octaves, octave_counts
from eigencurve.spectrum.quadrature import Sharpened, sharpen_and_count, with_zeros
from eigencurve.spectrum.spectrum import Spectrum, magnitudes

# Schedules are compared at step counts that grow by about 9 %, starting with the first that allows a density fit.
FIRST_COUNT = 32
GROWTH = 12 / 11
# The comparison covers the steps after this share of the run: its last quarter.
COMPARED_FROM = 0.75
NUM_POINTS = 20_000
# Pairs of redrawn estimates whose schedules are compared.
NUM_PAIRS = 15
ROUNDING = 1e-12
# Part of the change over the last quarter of the steps that counts as an error. Chosen on 100 random matrices so that
# 68 to 80 % of the octaves are within one standard error.
CHANGE = 0.5


class Settling:
    r"""Change of the schedule over the last quarter of the Lanczos steps.

    .. math:: \text{change}(k) = \max_{3k/4 \le j < k} \max_t \left|\ln\frac{f_j(t)}{f_k(t)}\right|

    The leading j rows of a tridiagonal are the tridiagonal of a run of j steps, so a run also contains the estimate
    of every shorter run. Sharpened spectra and schedules are computed once and kept.

    Args:
        weight_decay: Weight decay that the spectrum is prepared with, and the scale of the sharpening.
        total_steps: Number of steps T of the schedule.
        dtype: Floating-point type of the products.
        dim: Number of parameters; None to weight every eigenvalue by the probe.
        num_rows: Number of basis vectors that fit in memory; None for all of them. Residuals are reliable only as long
            as the basis is complete, so eigenvalues are counted after that many steps.

    Attributes:
        num_unused: Number of parameters whose row of the matrix is zero; the tridiagonals leave them out. Set it
            before the first call.
    """

    moved = renamed_attribute("moved", "schedule_change")

    def __init__(
        self,
        weight_decay: float,
        total_steps: int,
        dtype: torch.dtype,
        dim: int | None = None,
        num_rows: int | None = None,
    ) -> None:
        self.weight_decay, self.total_steps, self.dtype = weight_decay, total_steps, dtype
        self.dim, self.num_rows, self.num_unused = dim, num_rows, 0
        self._spectra: dict[bytes, Sharpened] = {}
        self._curves: dict[bytes, Array] = {}

    def __repr__(self) -> str:
        return f"Settling(weight_decay={self.weight_decay:g}, {self.total_steps:,} steps, dim={self.dim})"

    def step_counts(self, num_steps: int) -> list[int]:
        """Step counts up to ``num_steps`` at which schedules are compared."""
        counts = [FIRST_COUNT]
        while counts[-1] < num_steps:
            counts.append(max(counts[-1] + 1, math.floor(counts[-1] * GROWTH)))
        return [k for k in counts if k <= num_steps]

    def schedule_change(self, alphas: Array, betas: Array) -> float:
        """Largest |ln f_j/f_k| over the last quarter of the steps; infinite if there is nothing to compare with yet."""
        k = len(alphas)
        earlier = [j for j in self.step_counts(k) if COMPARED_FROM * k <= j < k]
        if not earlier or earlier[0] > 0.85 * k:
            return math.inf
        curve = self.curve(alphas, betas)
        return max(float(np.abs(self.curve(alphas[:j], betas[:j]) - curve).max()) for j in earlier)

    def sharpened(self, alphas: Array, betas: Array, exact: bool = False) -> Sharpened:
        """Sharpened spectrum of a tridiagonal, with its counted eigenvalues; an exact one has nothing to sharpen."""
        key = _key(alphas, betas)
        if key not in self._spectra:
            measure = without_copies(make_run(alphas, betas, False, self.dtype), self.dtype)
            residuals, counted = None if exact else measure.residuals, None
            if self.num_rows is not None and len(alphas) > self.num_rows:
                residuals = None
                counted = self.sharpened(alphas[: self.num_rows], betas[: self.num_rows]).counted
            dim = None if self.dim is None else self.dim - self.num_unused
            sharpened = sharpen_and_count(
                measure.alphas, measure.betas, self.weight_decay, dim=dim, residuals=residuals, counted=counted
            )
            self._spectra[key] = with_zeros(sharpened, self.num_unused)
        return self._spectra[key]

    def earlier(self, alphas: Array, betas: Array) -> Spectrum:
        """Sharpened spectrum after three quarters of the steps."""
        count = int(COMPARED_FROM * len(alphas))
        return self.sharpened(alphas[:count], betas[:count]).spectrum

    def curve(self, alphas: Array, betas: Array) -> Array:
        """Logarithm of f(t)/f(0) for the schedule of a tridiagonal; see :func:`log_curve`."""
        key = _key(alphas, betas)
        if key not in self._curves:
            self._curves[key] = log_curve(self.sharpened(alphas, betas).spectrum, self.weight_decay, self.total_steps)
        return self._curves[key]


def _key(alphas: Array, betas: Array) -> bytes:
    return np.concatenate((alphas, betas)).tobytes()


class SettlingRule:
    """Stop the first probe once the schedule has settled.

    Attributes:
        settling: Sharpened spectra and schedules of the probe.
        step_counts: Numbers of steps after which to ask; the last step is always one.
        reason, schedule_change: Why the probe stopped, as in the record of a measurement.
        note: Function that returns the errors so far, for the progress bar.
    """

    def __init__(self, operator: LanczosOperator, settings: EstimateSettings, plan: MemoryPlan) -> None:
        self.settings, self.num_products, self.dim = settings, plan.num_products, operator.dim
        self.settling = Settling(
            settings.weight_decay, settings.total_steps, operator.dtype, operator.dim, plan.num_rows
        )
        self.step_counts = set() if settings.settle is None else {*self.settling.step_counts(plan.num_products)}
        self.reason, self.schedule_change = "num_steps", math.inf
        self.note: Callable[[], str] | None = None

    def stops(self, alphas: Array, betas: Array, exact: bool) -> bool:
        """Whether the probe stops before its last step."""
        limit = self.settings.settle
        if exact:
            self.reason, self.schedule_change = "exact", 0.0
            return True
        if limit is None and len(alphas) < self.num_products:
            return False
        self.schedule_change = self.settling.schedule_change(alphas, betas)
        settled = limit is not None and self.schedule_change < limit
        self.reason = "settled" if settled else "num_steps"
        self.note = partial(self._errors, alphas, betas)
        return settled

    def _errors(self, alphas: Array, betas: Array) -> str:
        probe, settings = self.settling.sharpened(alphas, betas), self.settings
        between = probe_error([probe], settings.weight_decay, settings.total_steps, self.dim)
        return note_of(self.schedule_change, between)


def note_of(along_probe: float, between_probes: float) -> str:
    """The errors of the schedule along one probe and between probes, short enough for the progress bar."""
    return f"{'along ?' if math.isinf(along_probe) else f'along {along_probe:.1%}'}, across {between_probes:.1%}"


def log_curve(spectrum: Spectrum, weight_decay: float, total_steps: int) -> Array:
    """Logarithm of f(t)/f(0) for the Eigencurve schedule of a measured spectrum.

    It is computed for every step, or for 40,000 of a longer run.
    """
    prepared, steps = magnitudes(spectrum, weight_decay), sampled_steps(total_steps, NUM_POINTS)
    if prepared.mu == prepared.L:
        return np.zeros(len(steps))
    return np.asarray(np.log(curve_of(prepared, total_steps, lr=1.0)(steps)))


def probe_error(probes: Sequence[Sharpened], weight_decay: float, total_steps: int, dim: int) -> float:
    r"""Typical largest |ln f/g| between the schedules f and g of two estimates from other probes.

    More probes reduce this error; more Lanczos steps do not. With n probes, the weight of m eigenvalues in an octave is
    their share times a :math:`\chi^2_{nm}/(nm)` variable. Counted eigenvalues and known zeros have no such error. The
    weights of the estimate are redrawn octave by octave for 15 pairs, and the median distance between the schedules of
    a pair is returned.

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


def distance_between_probes(probes: Sequence[Sharpened], weight_decay: float, total_steps: int) -> float:
    """Largest |ln f/g| between the schedules f and g of two single probes; NaN if there is only one.

    It is the measured counterpart of :func:`probe_error` for one probe.
    """
    if len(probes) < 2:
        return math.nan
    curves = [log_curve(probe.spectrum, weight_decay, total_steps) for probe in probes]
    return max(float(np.abs(first - second).max()) for first, second in combinations(curves, 2))


def octave_shares(
    spectrum: Spectrum, probes: Sequence[Sharpened], earlier: Sequence[Spectrum], weight_decay: float, dim: int
) -> Octaves:
    r"""Share of the eigenvalues in each octave, with a standard error.

    Counted eigenvalues and known zeros have no sampling error. With n of them, let R = 1 - n/d be the share of the
    d - n others. A probe that is uniform on the sphere sees a group of share r among them with a beta distribution of
    variance

    .. math:: R^2\, \frac{2 f (1 - f)}{d - n + 2}, \qquad f = r / R.

    The mean of n probes has 1/n of that variance, or the observed variance of the probes if it is larger. Half the
    change over the last quarter of the steps is added, squared, to the variance.

    ``earlier`` are the estimates after three quarters of the steps, of the probes that are not exact.
    """
    octaves = octave_counts(spectrum, weight_decay, dim)

    def shares(part: Spectrum) -> Array:
        return octaves.total(part.eigenvalues, part.weights)

    mean, each = shares(spectrum), np.array([shares(probe.spectrum) for probe in probes])
    variance = (
        np.sum(
            [
                _sampling_variance(own, _num_certain(probe, octaves), dim)
                for own, probe in zip(each, probes, strict=True)
            ],
            axis=0,
        )
        / len(probes) ** 2
    )
    if len(probes) > 1:
        variance = np.maximum(variance, each.var(axis=0, ddof=1) / len(probes))
    if earlier:
        variance = variance + (CHANGE * (mean - np.mean([shares(before) for before in earlier], axis=0))) ** 2
    return Octaves("share", octaves.index, octaves.lower, frozen(mean), frozen(np.sqrt(variance)), weight_decay)


def _num_certain(probe: Sharpened, octaves: Octaves) -> Array:
    """The number of eigenvalues in each octave that have no sampling error."""
    zeros = octaves.total(np.zeros(1), np.array([float(probe.num_zeros)]))
    return octaves.total(probe.counted, np.ones(len(probe.counted))) + zeros


def _sampling_variance(shares: Array, certain: Array, dim: int) -> Array:
    """Variance of the shares of one probe, given the number of eigenvalues per octave without sampling error."""
    rest = shares - certain / dim
    total, left = 1 - certain.sum() / dim, dim - certain.sum()
    fraction = np.clip(rest / total, 0.0, 1.0) if left else np.zeros_like(rest)
    return np.asarray(total**2 * 2 * fraction * (1 - fraction) / (left + 2))
