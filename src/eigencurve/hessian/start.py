"""estimate_start and start_from_gradient: the initial error of a run in the octaves of the Hessian's spectrum."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve._moved import renamed
from eigencurve.hessian.accuracy import CHANGE
from eigencurve.hessian.batches import tensor_bytes
from eigencurve.hessian.directions import DirectionMeasure, grid_of, measure_directions
from eigencurve.hessian.estimate import SpectrumEstimate
from eigencurve.hessian.gradients import ExampleGradients, gradient_source
from eigencurve.hessian.lanczos import LanczosOperator
from eigencurve.hessian.settings import EstimateSettings
from eigencurve.hessian.space import own_part, space_of
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.octaves import Octaves
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.spectrum.start import StartEstimate

# A point of parameter space.
Point = Tensor | Mapping[str, Tensor] | nn.Module


@renamed(num_steps="num_products")
def estimate_start(
    operator: LanczosOperator,
    displacement: Tensor | Sequence[Point],
    spectrum: Spectrum | SpectrumEstimate,
    *,
    num_products: int = 60,
    weight_decay: float | None = None,
    memory_budget: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> StartEstimate:
    r"""Measure the initial error of a run from the start and the end of an earlier run.

    The end of the earlier run takes the place of the minimum. Lanczos on H from
    :math:`\Delta = w_{start} - w_{end}` gives :math:`\sum_{j \in o} \lambda_j \Delta_j^2` for every octave o, with
    λ_j = |λ| + weight decay. Use the operator and the spectrum of the end.

    Sharp directions are resolved one by one; in flat directions only the total of each octave is known. An earlier run
    that was too short has not moved along flat directions, so its error there is too small.

    Args:
        operator: Operator of H at the end of the earlier run.
        displacement: The flat vector Δ, or a pair (start, end) of state dicts, modules or flat vectors.
        spectrum: Spectrum of the same operator, or its :class:`SpectrumEstimate`.
        num_products: Number of Lanczos steps (upper limit).
        weight_decay: Weight decay that the spectrum will be prepared with; by default, as in the estimate, or 5e-4.
        memory_budget: Upper limit in bytes for all vectors together; see :func:`plan_memory`.
        checkpoint: File to save to every few seconds, and to resume from.
        progress: Whether to show a progress bar on a terminal.

    Raises:
        ValueError: If an argument is invalid, or if a parameter of the operator is missing from a state dict.
    """
    function, started = "estimate_start", time.monotonic()
    grid = grid_of(function, operator, spectrum, weight_decay)
    settings = EstimateSettings(
        num_products, weight_decay=grid.weight_decay, memory_budget=memory_budget, checkpoint=checkpoint,
        progress=progress, function=function,
    )  # fmt: skip
    vector = _in_metric(operator, _difference(function, operator, displacement))
    mark = hashlib.sha256(tensor_bytes(vector)).hexdigest()
    (measure,) = measure_directions(operator, [lambda: vector], settings, mark)
    mass, before = (
        _initial_error(grid, *part, power=1) for part in ((measure.points, measure.masses), measure.earlier)
    )
    return _estimate(grid, mass, CHANGE * np.abs(mass - before), "displacement", measure, started)


@renamed(num_steps="num_products")
def start_from_gradient(
    operator: LanczosOperator,
    noise: NoiseEstimate,
    spectrum: Spectrum | SpectrumEstimate,
    *,
    num_products: int = 60,
    memory_budget: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> StartEstimate:
    r"""Estimate the initial error of a run from the gradient at its start, without an earlier run.

    On a quadratic, the gradient :math:`g = H\Delta` of the loss with its weight decay gives
    :math:`\lambda_j \Delta_j^2 = g_j^2 / \lambda_j`, with λ_j = |λ| + weight decay. The sampling noise of g adds
    :math:`\sigma_j^2 B/m` on average, which is subtracted; a negative remainder counts as zero.

    This works in sharp directions only. As λ → 0, the remaining noise is divided by λ_j, and the loss is no quadratic
    that far from its minimum; look at the standard errors.

    Args:
        operator: Operator of H at the start.
        noise: Noise of the same operator, from :func:`estimate_noise`.
        spectrum: Spectrum of the same operator, or its :class:`SpectrumEstimate`.
        num_products: Number of Lanczos steps (upper limit).
        memory_budget: Upper limit in bytes for all vectors together; see :func:`plan_memory`.
        checkpoint: File to save to every few seconds, and to resume from.
        progress: Whether to show a progress bar on a terminal.

    Raises:
        TypeError: If the operator has no examples, or ``noise`` is not a NoiseEstimate.
        ValueError: If an argument is invalid.
    """
    function, started = "start_from_gradient", time.monotonic()
    if not isinstance(noise, NoiseEstimate):
        _check.wrong_type(function, "noise", "a NoiseEstimate", noise)
    grid = grid_of(function, operator, spectrum, noise.weight_decay)
    settings = EstimateSettings(
        num_products, weight_decay=grid.weight_decay, memory_budget=memory_budget, checkpoint=checkpoint,
        progress=progress, function=function,
    )  # fmt: skip
    if not np.array_equal(grid.lower, noise.octaves.lower):
        _check.refuse(function, "noise", "measured with the same spectrum", "another one")
    gradients = ExampleGradients(function, operator)
    vector = gradients.mean + grid.weight_decay * _in_metric(operator, gradients.source.parameter_vector())
    (measure,) = measure_directions(operator, [lambda: vector], settings)
    raw, before = (
        _initial_error(grid, *part, power=-1) for part in ((measure.points, measure.masses), measure.earlier)
    )
    mass = raw - grid.num_eigenvalues * noise.octaves.sigma2 * noise.batch_size / noise.num_examples
    scale = grid.num_eigenvalues / grid.eigenvalue_sum
    error = np.hypot(CHANGE * (raw - before), scale * noise.octaves.gradient_error)
    return _estimate(grid, np.maximum(mass, 0.0), error, "gradient", measure, started)


def _estimate(
    grid: Octaves, mass: Array, error: Array, source: str, measure: DirectionMeasure, started: float
) -> StartEstimate:
    count = grid.num_eigenvalues
    return StartEstimate(
        octaves=replace(
            grid,
            quantity="level",
            value=frozen(mass / count),
            error=frozen(error / count),
            columns={"num_eigenvalues": count, "mass": frozen(mass)},
        ),
        loss=float(mass.sum()) / 2,
        source=source,
        num_products=measure.num_products,
        seconds=time.monotonic() - started,
    )


def _initial_error(grid: Octaves, points: Array, masses: Array, power: int) -> Array:
    """Sum of λ_j Δ_j² in each octave, from the masses Δ_j² (power 1), or from the masses g_j² (power -1)."""
    return grid.total(points, masses * (np.abs(points) + grid.weight_decay) ** power)


def _in_metric(operator: Any, displacement: Tensor) -> Tensor:
    """A difference of parameters in the operator's coordinates."""
    transform = getattr(operator, "transform_displacement", None)
    return displacement if transform is None else cast(Tensor, transform(displacement))


def _difference(function: str, operator: LanczosOperator, displacement: Any) -> Tensor:
    if isinstance(displacement, Tensor):
        return _flat(function, operator, displacement)
    if not isinstance(displacement, Sequence) or len(displacement) != 2:
        need = "a flat tensor, or a pair (start, end) of state dicts, modules or flat tensors"
        _check.wrong_type(function, "displacement", need, type(displacement).__name__)
    start, end = (_flat(function, operator, point) for point in displacement)
    return start - end


def _flat(function: str, operator: LanczosOperator, point: Any) -> Tensor:
    """A point as one flat vector, in the order of the operator's parameters."""
    if isinstance(point, nn.Module):
        point = dict(point.named_parameters())
    if isinstance(point, Mapping):
        names = gradient_source(function, operator).names
        missing = [name for name in names if name not in point]
        if missing:
            _check.refuse(function, "displacement", f"one with the parameter {missing[0]!r}", f"{len(point)} others")
        point = torch.cat([own_part(point[name].detach()).reshape(-1) for name in names])
    if not isinstance(point, Tensor):
        need = "made of state dicts, modules or flat tensors"
        _check.wrong_type(function, "displacement", need, type(point).__name__)
    space = space_of(operator)
    own = space.part(point.detach())
    if own.shape != (space.size,):
        _check.refuse(function, "displacement", f"of {space.size} numbers", f"shape {tuple(own.shape)}")
    return own.to(operator.device, operator.dtype)
