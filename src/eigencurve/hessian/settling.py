"""Whether more Lanczos steps would still change the schedule, read off the leading blocks of the tridiagonal."""

from __future__ import annotations

import math

import numpy as np
import torch

from eigencurve._arrays import Array
from eigencurve.hessian.lanczos import make_run, without_copies
from eigencurve.schedules.eigencurve import eigencurve
from eigencurve.spectrum.quadrature import sharpen
from eigencurve.spectrum.spectrum import Spectrum, prepare

# Curves are compared at step counts that grow by a twelfth, from the first that a density can be fitted to.
FIRST_LOOK = 32
GROWTH = 12 / 11
LAST_QUARTER = 0.75


class Settling:
    r"""The schedule that each leading block of a tridiagonal gives, and how far it still moves.

    .. math:: \text{moved}(k) = \max_{3k/4 \le j < k} \max_t \left|\ln\frac{f_j(t)}{f_k(t)}\right|

    A leading block of j rows is the tridiagonal of j steps, so a run knows the estimates of all shorter ones.

    Args:
        weight_decay: that the spectrum is prepared with, and the scale that it is sharpened to.
        total_steps: T of the schedule.
        dtype: of the products.
    """

    def __init__(self, weight_decay: float, total_steps: int, dtype: torch.dtype) -> None:
        self.weight_decay, self.total_steps, self.dtype = weight_decay, total_steps, dtype
        self._curves: dict[int, Array] = {}

    def looks(self, num_steps: int) -> list[int]:
        """The step counts up to ``num_steps`` at which the curve is worth computing."""
        found = [FIRST_LOOK]
        while found[-1] < num_steps:
            found.append(max(found[-1] + 1, math.floor(found[-1] * GROWTH)))
        return [k for k in found if k <= num_steps]

    def moved(self, alphas: Array, betas: Array) -> float:
        """The largest |ln f_j/f_k| over the last quarter of the steps; infinite where that is not known yet."""
        k = len(alphas)
        before = [j for j in self.looks(k) if LAST_QUARTER * k <= j < k]
        if not before or before[0] > 0.85 * k:
            return math.inf
        curve = self._curve(alphas, betas, k)
        return max(float(np.abs(self._curve(alphas, betas, j) - curve).max()) for j in before)

    def _curve(self, alphas: Array, betas: Array, num_steps: int) -> Array:
        """Log f of a leading block."""
        if num_steps not in self._curves:
            run = make_run(alphas[:num_steps], betas[:num_steps], False, self.dtype)
            spectrum = sharpen(*without_copies(run, self.dtype), scale=self.weight_decay)
            self._curves[num_steps] = log_curve(spectrum, self.weight_decay, self.total_steps)
        return self._curves[num_steps]


def log_curve(spectrum: Spectrum, weight_decay: float, total_steps: int) -> Array:
    """Log f(t)/f(0) of the schedule that a measured spectrum gives."""
    prepared = prepare(spectrum, weight_decay)
    if prepared.mu == prepared.L:
        return np.zeros(total_steps)
    return np.asarray(np.log(eigencurve(prepared, total_steps, lr=1.0).values()))
