"""The mean gradient of an operator's examples, and random vectors with the covariance of one example's gradient."""

from __future__ import annotations

import math
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from eigencurve import _check
from eigencurve.hessian.lanczos import TOLERANCE, LanczosOperator
from eigencurve.hessian.space import space_of


class GradientOperator(Protocol):
    """An operator that knows the gradient of its loss and can split it by rows."""

    @property
    def names(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def num_rows(self) -> int: ...  # noqa: D102
    def gradient(self, rows: Tensor | None = None) -> Tensor: ...  # noqa: D102
    def parameter_vector(self) -> Tensor: ...  # noqa: D102


class ExampleGradients:
    r"""Gradients of an operator's examples, in the operator's coordinates.

    With random signs :math:`s_i = \pm 1` that sum to zero over m examples,

    .. math:: v = m^{-1/2} \sum_i s_i \nabla\ell_i, \qquad
              E[vv^\top] = \frac1{m-1} \sum_i (\nabla\ell_i - g)(\nabla\ell_i - g)^\top,

    because :math:`E[s_i s_j] = -1/(m-1)`. This is the unbiased covariance C of the gradient of one example. If m is
    odd, a random example has sign 0 and m - 1 replaces m in the factor, which leaves :math:`E[vv^\top]` unchanged. The
    examples with positive sign form one mean loss and those with negative sign another, so v costs as much as one
    gradient.

    A row of a batch is an example. If the operator has a ``count``, the gradient of row i is weighted by its count
    divided by the mean count, so the mean over the rows is the gradient of the loss.

    Args:
        function: Name of the caller, for error messages.
        operator: Operator of a model's loss. One with ``transform_gradient`` gets transformed gradients.
        examples: Operator of the same model on other examples, whose gradients to take instead.

    Raises:
        TypeError: If the operator does not know the gradient of its loss.
        ValueError: If the operators have different parameters.
    """

    def __init__(self, function: str, operator: LanczosOperator, examples: LanczosOperator | None = None) -> None:
        self.function, self.operator = function, operator
        self.source = gradient_source(function, operator if examples is None else examples)
        if examples is not None and self.source.names != gradient_source(function, operator).names:
            need = ("an operator on the same parameters as ", _check.Arg("operator"))
            _check.refuse(function, "examples", need, f"{len(self.source.names)} other parameters")
        self.mean = self._transformed(self.source.gradient())

    @property
    def num_examples(self) -> int:
        """Number of examples m."""
        return self.source.num_rows

    def sample(self, seed: int) -> Tensor:
        """One vector v, with the signs of ``seed``."""
        signs = balanced_signs(self.num_examples, seed)
        positive, negative = (self._transformed(self.source.gradient(signs == sign)) for sign in (1, -1))
        return positive.sub_(negative).mul_(self.num_examples / math.sqrt(int(signs.abs().sum())))

    def require_independent(self) -> None:
        """Check that there are examples, and that the gradients of their two halves add up to the whole gradient.

        Raises:
            ValueError: If there are fewer than two examples, or if the loss is not a mean over them.
        """
        if self.num_examples < 2:
            advice = "Pass batches of tensors with one row per example."
            _check.refuse(self.function, "operator", "one of at least 2 examples", self.num_examples, advice)
        chosen = balanced_signs(self.num_examples, seed=0) == 1
        halves = [self._transformed(self.source.gradient(rows)) for rows in (chosen, ~chosen)]
        norm = space_of(self.operator).norm
        size = max(norm(part) for part in (*halves, self.mean))
        gap = norm(self.mean - halves[0] - halves[1])
        if gap > TOLERANCE[self.operator.dtype] * size:
            remedy = (
                "The gradients of two halves of the examples do not add up to the whole gradient. Use "
                "reduction='mean' without class weights, pass ", _check.Arg("count"), " if the loss ignores some "
                "labels, and use no loss that compares the examples of a batch.",
            )  # fmt: skip
            got = f"a relative difference of {gap / size:.1e}"
            _check.refuse(self.function, "operator", "one whose loss is a mean over examples", got, remedy)

    def _transformed(self, gradient: Tensor) -> Tensor:
        transform = getattr(self.operator, "transform_gradient", None)
        return gradient if transform is None else cast(Tensor, transform(gradient))


def gradient_source(function: str, operator: Any) -> GradientOperator:
    """The operator that knows the gradient of the loss: ``operator`` itself, or the one that it wraps."""
    for candidate in (operator, getattr(operator, "operator", None)):
        if hasattr(candidate, "gradient") and hasattr(candidate, "num_rows"):
            return cast(GradientOperator, candidate)
    need = "the HessianOperator or GaussNewtonOperator of a model's loss"
    remedy = "A matrix or a function of products has no examples."
    raise _check.ArgumentTypeError(function, "operator", need, type(operator).__name__, remedy)


def balanced_signs(num_examples: int, seed: int) -> Tensor:
    """Random signs that sum to zero: as many +1 as -1, and one 0 if the number of examples is odd."""
    half = num_examples // 2
    order = torch.randperm(num_examples, generator=torch.Generator().manual_seed(seed))
    signs = torch.zeros(num_examples, dtype=torch.int8)
    signs[order[:half]], signs[order[half : 2 * half]] = 1, -1
    return signs
