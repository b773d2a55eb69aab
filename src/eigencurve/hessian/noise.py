"""estimate_noise: the covariance of the gradient noise in the octaves of the Hessian's spectrum."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve._moved import renamed
from eigencurve.hessian.curvature import CurvatureOperator
from eigencurve.hessian.directions import DirectionMeasure, grid_of, measure_directions
from eigencurve.hessian.estimate import SpectrumEstimate
from eigencurve.hessian.gradients import ExampleGradients
from eigencurve.hessian.lanczos import LanczosOperator
from eigencurve.hessian.loop import Start
from eigencurve.hessian.settings import EstimateSettings, seed_of
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.octaves import Octaves
from eigencurve.spectrum.spectrum import Spectrum

FUNCTION = "estimate_noise"
# Weight of the level of all octaves in the expected noise of one octave, as a number of eigenvalues.
PRIOR = 2.0
# An octave enters the fit of the exponent if the relative error of its noise is below this.
ENOUGH_SIGNAL = 0.5


@renamed(num_steps="num_products")
def estimate_noise(
    operator: LanczosOperator,
    spectrum: Spectrum | SpectrumEstimate,
    batch_size: int,
    *,
    num_samples: int = 1,
    num_products: int = 60,
    seed: int = 0,
    weight_decay: float | None = None,
    examples: CurvatureOperator | None = None,
    memory_budget: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> NoiseEstimate:
    r"""Measure the gradient noise of a model in the octaves of its Hessian's spectrum.

    A signed sum v of the examples' gradients has the covariance C of one example's gradient; see
    :class:`eigencurve.hessian.gradients.ExampleGradients`. Lanczos on H from v gives nodes θ and weights ω, and
    :math:`\|v\|^2 \sum_{\theta \in o} \omega` is an unbiased estimate of the trace of C within octave o, as far as the
    steps resolve it. The measure is sharpened like a spectrum, so octaves without a node get their share. For batches
    of B examples the noise level is

    .. math:: \sigma_o^2 = \frac{\operatorname{tr}_o C}{B \sum_{j \in o} (|\lambda_j| + \text{weight decay})}

    One more run, from the mean gradient g, gives the critical batch size :math:`\operatorname{tr}(HC) / g^\top H g`
    after the sampling noise of g, C/m, is subtracted.

    The mass in an octave of n eigenvalues has the standard error of a :math:`\chi^2` variable with
    min(n, m - 1) degrees of freedom per sign vector, which assumes that C is nearly isotropic within an octave. Its
    mean is taken from the octave and, with the weight of two eigenvalues, from the level of all octaves. If several
    sign vectors scatter more than that, their scatter is used. Half the change over the last quarter of the steps is
    added, squared, and so is the error of the number of eigenvalues if you pass an estimate. The error from having
    only m examples is not included.

    Args:
        operator: :class:`HessianOperator` or :class:`GaussNewtonOperator` of the model, or one that wraps it. Its loss
            must be a mean over examples, one per row of its batches.
        spectrum: Spectrum of the same operator, or its :class:`SpectrumEstimate`, which also has error bars.
        batch_size: Number of examples B in a batch of the training run.
        num_samples: Number of sign vectors to average.
        num_products: Number of Lanczos steps per vector (upper limit).
        seed: Seed of the signs.
        weight_decay: Weight decay that the spectrum will be prepared with; by default, as in the estimate, or 5e-4.
        examples: Operator of the same model whose examples the noise is measured on; by default ``operator``. More
            examples than those of H reduce the error from having only m, but add a bias: H of few examples is flat in
            directions in which other gradients scatter. Use the default for the exponent of C ∝ H^γ.
        memory_budget: Upper limit in bytes for all vectors together; see :func:`plan_memory`.
        checkpoint: File to save to every few seconds, and to resume from; not the spectrum's.
        progress: Whether to show a progress bar on a terminal.

    Raises:
        TypeError: If the operator has no examples, such as a matrix.
        ValueError: If an argument is invalid, if the loss is not a mean over examples, or if the model has batch norm
            in train mode, where one example has no gradient of its own.
        KeyboardInterrupt: On Ctrl-C, after saving to the checkpoint.
    """
    started = time.monotonic()
    size = _check.whole(FUNCTION, "batch_size", batch_size, minimum=1)
    count = _check.whole(FUNCTION, "num_samples", num_samples, minimum=1)
    grid = grid_of(FUNCTION, operator, spectrum, weight_decay)
    settings = EstimateSettings(
        num_products, seed=seed, weight_decay=grid.weight_decay, memory_budget=memory_budget, checkpoint=checkpoint,
        progress=progress, function=FUNCTION,
    )  # fmt: skip
    gradients = ExampleGradients(FUNCTION, operator, examples)
    gradients.require_independent()
    samples = [partial(gradients.sample, seed_of(settings.seed, index)) for index in range(count)]
    starts: list[Start] = [lambda: gradients.mean, *samples]
    mean, *measures = measure_directions(operator, starts, settings, examples=examples)
    return _summary(grid, measures, mean, size, gradients.num_examples, time.monotonic() - started)


def _summary(
    grid: Octaves,
    samples: Sequence[DirectionMeasure],
    gradient: DirectionMeasure,
    batch_size: int,
    num_examples: int,
    seconds: float,
) -> NoiseEstimate:
    mass, mass_error = _masses(grid, samples, num_examples)
    freedom = _freedom(grid, num_examples)
    sampling = mass**2 * 2 / freedom / num_examples**2
    slope = gradient.octaves(grid) - mass / num_examples
    # Variance of |g + n|² - |n|² for a fixed g and noise n of covariance C/m, per octave.
    scatter = sampling + 4 * mass * np.maximum(slope, 0.0) / (grid.num_eigenvalues * num_examples)
    slope_error = np.sqrt(scatter + (mass_error / num_examples) ** 2 + gradient.change(grid) ** 2)
    sigma2 = mass / (batch_size * grid.eigenvalue_sum)
    relative = np.hypot(_ratio(mass_error, mass), grid.error / grid.num_eigenvalues)
    total, trace = float(grid.eigenvalue_sum.sum()), float(mass.sum())
    trace_hc = float(np.mean([sample.curvature for sample in samples]))
    exponent, exponent_error = _exponent(grid, mass, relative)
    curvature_error = math.sqrt(float(((scatter + sampling / len(samples)) * _mean_curvature(grid) ** 2).sum()))
    return NoiseEstimate(
        octaves=replace(
            grid, quantity="sigma2", value=frozen(sigma2), error=frozen(sigma2 * relative),
            columns={
                "num_eigenvalues": grid.num_eigenvalues, "eigenvalue_sum": grid.eigenvalue_sum, "mass": frozen(mass),
                "gradient": frozen(slope), "gradient_error": frozen(slope_error),
            },
        ),
        sigma2=trace / (batch_size * total),
        sigma2_error=math.sqrt(float((mass_error**2).sum())) / (batch_size * total),
        exponent=exponent,
        exponent_error=exponent_error,
        trace=trace,
        trace_hc=trace_hc,
        gradient_square=float(slope.sum()),
        gradient_curvature=gradient.curvature - trace_hc / num_examples,
        gradient_curvature_error=curvature_error,
        batch_size=batch_size,
        num_samples=len(samples),
        num_products=sum(measure.num_products for measure in (*samples, gradient)),
        num_examples=num_examples,
        seconds=seconds,
    )  # fmt: skip


def _masses(grid: Octaves, samples: Sequence[DirectionMeasure], num_examples: int) -> tuple[Array, Array]:
    """Trace of C in each octave, and its standard error."""
    each = np.array([sample.octaves(grid) for sample in samples])
    if not all(sample.exact for sample in samples):
        each = np.array([pooled(masses, grid.eigenvalue_sum) for masses in each])
    mean = each.mean(axis=0)
    freedom = _freedom(grid, num_examples)
    usual = grid.eigenvalue_sum * mean.sum() / grid.eigenvalue_sum.sum()
    expected = (freedom * mean + PRIOR * usual) / (freedom + PRIOR)
    variance = 2 * expected**2 / freedom / len(samples)
    if len(samples) > 1:
        variance = np.maximum(variance, each.var(axis=0, ddof=1) / len(samples))
    change = np.mean([sample.change(grid) for sample in samples], axis=0)
    return mean, np.sqrt(variance + change**2)


def _mean_curvature(grid: Octaves) -> Array:
    """Mean of |λ|, without weight decay, over the eigenvalues of each octave."""
    return np.asarray(np.maximum(grid.eigenvalue_sum / grid.num_eigenvalues - grid.weight_decay, 0.0))


def _freedom(grid: Octaves, num_examples: int) -> Array:
    """Degrees of freedom of the mass in each octave."""
    return np.asarray(np.clip(grid.num_eigenvalues, 1.0, num_examples - 1))


def pooled(masses: Array, sums: Array) -> Array:
    """Masses with every empty octave joined to the next non-empty one above it, or below it at the top.

    Joined octaves share their mass in proportion to ``sums``. An octave is empty if a measure that could not be
    sharpened has no node there; the mass is then in the neighbouring nodes.

    >>> pooled(np.array([0.0, 6.0, 5.0, 0.0]), np.array([1.0, 2.0, 3.0, 2.0]))
    array([2., 4., 3., 2.])
    """
    (used,) = np.nonzero(masses)
    if len(used) == 0:
        return masses
    owner = np.minimum(np.searchsorted(used, np.arange(len(masses))), len(used) - 1)
    level = np.bincount(owner, masses) / np.bincount(owner, sums)
    return np.asarray(level[owner] * sums)


def _exponent(grid: Octaves, mass: Array, relative: Array) -> tuple[float, float]:
    """γ of mass per eigenvalue ∝ |λ|^γ by weighted least squares on logarithms, and its standard error."""
    used = (mass > 0) & (relative < ENOUGH_SIGNAL) & (_mean_curvature(grid) > grid.weight_decay)
    if used.sum() < 2:
        return math.nan, math.nan
    x, y = np.log(_mean_curvature(grid)[used]), np.log(mass[used] / grid.num_eigenvalues[used])
    weights = 1 / np.maximum(relative[used], 1e-12) ** 2
    x, y = x - np.average(x, weights=weights), y - np.average(y, weights=weights)
    spread = float(weights @ x**2)
    slope = float(weights @ (x * y)) / spread
    misfit = float(weights @ (y - slope * x) ** 2) / max(len(x) - 2, 1)
    return slope, math.sqrt(max(misfit, 1.0) / spread)


def _ratio(error: Array, value: Array) -> Array:
    return np.divide(error, value, out=np.zeros_like(value), where=value > 0)
