"""Smooth activations whose double backward costs two multiplications instead of evaluating the function again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

Pointwise = Callable[[Tensor], Tensor]
# Functions of one tensor, entry by entry. Piecewise linear ones such as ReLU are fast enough without this.
ACTIVATIONS: frozenset[Any] = frozenset(
    {F.gelu, F.silu, F.mish, F.softplus, torch.tanh, Tensor.tanh, torch.sigmoid, Tensor.sigmoid}
)


def activation(function: Pointwise, x: Tensor) -> Tensor:
    r"""The value φ(x) of a function that acts on each entry alone.

    The gradient is g φ'(x), and its own derivative along a dual vector u has the parts u φ'(x) and u g φ''(x). Both
    factors of u are computed once for a graph, however many products use it.
    """
    value: Tensor = _Activation.apply(x, function)  # type: ignore[no-untyped-call]
    return value


class _Activation(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Pointwise) -> Tensor:
        ctx.save_for_backward(x)
        ctx.function, ctx.slope = function, None
        return function(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        if ctx.slope is None:
            ctx.slope = _slope(ctx.function, x)
        return _ActivationBackward.apply(g, x, ctx.slope, ctx.function), None  # type: ignore[no-untyped-call]


class _ActivationBackward(Function):
    """The gradient g φ'(x)."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, x: Tensor, slope: Tensor, function: Pointwise) -> Tensor:
        ctx.save_for_backward(g, x, slope)
        ctx.function, ctx.bend = function, None
        return g * slope

    @staticmethod
    def backward(ctx: Any, dual: Tensor) -> Any:
        g, x, slope = ctx.saved_tensors
        if ctx.needs_input_grad[1] and ctx.bend is None:
            ctx.bend = g * _curvature(ctx.function, x)
        return (
            dual * slope if ctx.needs_input_grad[0] else None,
            dual * ctx.bend if ctx.needs_input_grad[1] else None,
            None,
            None,
        )


def _slope(function: Pointwise, x: Tensor) -> Tensor:
    """The derivative φ'(x)."""
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        value = function(leaf)
    return torch.autograd.grad(value, leaf, torch.ones_like(value))[0]


def _curvature(function: Pointwise, x: Tensor) -> Tensor:
    """The second derivative φ''(x), the slope of the slope."""

    def slope(leaf: Tensor) -> Tensor:
        value = function(leaf)
        return torch.autograd.grad(value, leaf, torch.ones_like(value), create_graph=True)[0]

    return _slope(slope, x)
