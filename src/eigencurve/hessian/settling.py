"""Stopping rule of the estimate: compare the schedules that the last Lanczos steps give."""

from __future__ import annotations

import math

import numpy as np
import torch

from eigencurve._arrays import Array
from eigencurve.hessian.lanczos import make_run, without_copies
from eigencurve.schedules.eigencurve import curve_of
from eigencurve.schedules.sampling import sampled_steps
from eigencurve.spectrum.quadrature import Sharpened, sharpen_and_count, with_zeros
from eigencurve.spectrum.spectrum import Spectrum, magnitudes

# Schedules are compared at step counts that grow by about 9 %, starting with the first that allows a density fit.
FIRST_COUNT = 32
GROWTH = 12 / 11
# The comparison covers the steps after this share of the run: its last quarter.
COMPARED_FROM = 0.75
NUM_POINTS = 20_000


class Settling:
    r"""Distance that the schedule still moved over the last quarter of the Lanczos steps.

    .. math:: \text{moved}(k) = \max_{3k/4 \le j < k} \max_t \left|\ln\frac{f_j(t)}{f_k(t)}\right|

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
        num_unused: Number of parameters whose row of the matrix is zero. The tridiagonals are those of the others. Set
            it before the first call.
    """

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
        return f"Settling(weight_decay={self.weight_decay:g}, total_steps={self.total_steps}, dim={self.dim})"

    def step_counts(self, num_steps: int) -> list[int]:
        """Step counts up to ``num_steps`` at which schedules are compared."""
        counts = [FIRST_COUNT]
        while counts[-1] < num_steps:
            counts.append(max(counts[-1] + 1, math.floor(counts[-1] * GROWTH)))
        return [k for k in counts if k <= num_steps]

    def moved(self, alphas: Array, betas: Array) -> float:
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
            run = make_run(alphas, betas, False, self.dtype)
            measure = without_copies(run, self.dtype)
            residuals, counted = None if exact else measure.residuals, None
            if self.num_rows is not None and len(alphas) > self.num_rows:
                residuals = None
                counted = self.sharpened(alphas[: self.num_rows], betas[: self.num_rows]).counted
            dim = None if self.dim is None else self.dim - self.num_unused
            found = sharpen_and_count(
                measure.alphas, measure.betas, self.weight_decay, dim=dim, residuals=residuals, counted=counted
            )
            self._spectra[key] = with_zeros(found, self.num_unused)
        return self._spectra[key]

    def curve(self, alphas: Array, betas: Array) -> Array:
        """Logarithm of f(t)/f(0) for the schedule of a tridiagonal; see :func:`log_curve`."""
        key = _key(alphas, betas)
        if key not in self._curves:
            self._curves[key] = log_curve(self.sharpened(alphas, betas).spectrum, self.weight_decay, self.total_steps)
        return self._curves[key]


def log_curve(spectrum: Spectrum, weight_decay: float, total_steps: int) -> Array:
    """Logarithm of f(t)/f(0) for the Eigencurve schedule of a measured spectrum.

    It is computed for every step, or for 40,000 of a longer run.
    """
    prepared, steps = magnitudes(spectrum, weight_decay), sampled_steps(total_steps, NUM_POINTS)
    if prepared.mu == prepared.L:
        return np.zeros(len(steps))
    return np.asarray(np.log(curve_of(prepared, total_steps, lr=1.0)(steps)))


def _key(alphas: Array, betas: Array) -> bytes:
    return np.concatenate((alphas, betas)).tobytes()
