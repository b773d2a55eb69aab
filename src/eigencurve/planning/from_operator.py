"""Measure what a plan needs on the Hessian of a model: its spectrum and its gradient noise."""

from __future__ import annotations

from typing import Any

from eigencurve import _check
from eigencurve.hessian import PreconditionedOperator, estimate_noise, estimate_spectrum
from eigencurve.planning.subject import USUAL_DECAY, Subject


def operator_subject(
    operator: Any, total_steps: int, weight_decay: float | None, batch_size: int | None, measure_noise: bool
) -> Subject:
    """The spectrum of an operator, with the gradient noise if the operator has examples.

    Args:
        operator: ``HessianOperator``, ``GaussNewtonOperator``, or one of them preconditioned by an optimizer; any other
            operator of :func:`eigencurve.hessian.estimate_spectrum` has no examples, so its noise is not measured.
        total_steps: Number of steps T of the run.
        weight_decay: Weight decay of the run; by default that of the optimizer, or 5e-4.
        batch_size: Batch size of the run, for the noise.
        measure_noise: Whether to measure the noise; False if it is given.
    """
    decay = decay_of(operator) if weight_decay is None else weight_decay
    has_examples = hasattr(getattr(operator, "operator", operator), "num_examples")
    if has_examples and measure_noise and batch_size is None:
        remedy = "The gradient noise of a batch is measured too; or pass 'noise'."
        _check.refuse("plan", "batch_size", "given with the Hessian of a model", None, remedy)
    found = estimate_spectrum(operator, weight_decay=decay, total_steps=total_steps)
    noise = None
    if has_examples and measure_noise and batch_size is not None:
        noise = estimate_noise(operator, found, batch_size)
    origin = "given" if weight_decay is not None else _decay_source(operator)
    return Subject(
        "measured spectrum", found.spectrum, found.weight_decay, found.measurement(), noise=noise, decay_source=origin
    )


def decay_of(operator: Any) -> float:
    """The weight decay to add to every eigenvalue, which must be positive.

    If the products contain the decay, nothing should be added. Then it only sets the resolution near zero, and a
    hundredth of the smallest decay changes no eigenvalue by more than 1 %.
    """
    if not isinstance(operator, PreconditionedOperator):
        return USUAL_DECAY
    return operator.eigenvalue_shift or operator.smallest_decay / 100 or USUAL_DECAY


def _decay_source(operator: Any) -> str:
    """A decay that is read from the optimizer is measured, any other is assumed."""
    return "measured" if getattr(operator, "eigenvalue_shift", 0.0) else "assumed"
