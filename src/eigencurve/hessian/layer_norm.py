"""Layer norm with a double backward that is about as fast as its backward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


def layer_norm(x: Tensor, shape: list[int], weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    r"""Layer norm over the last axes of ``x``, which have the sizes ``shape``.

    .. math:: y = w \hat x + b, \qquad \hat x = r (x - \bar x), \qquad r = (\mathrm{var}(x) + \epsilon)^{-1/2}
    """
    value: Tensor = _LayerNorm.apply(x, weight, bias, shape, eps)  # type: ignore[no-untyped-call]
    return value


class _LayerNorm(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, shape: list[int], eps: float) -> Tensor:
        value, mean, scale = torch.native_layer_norm(x, shape, weight, bias, eps)
        ctx.save_for_backward(x, weight, bias, mean, scale)
        ctx.shape = shape
        return value

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return (*_LayerNormBackward.apply(g, *ctx.saved_tensors, ctx.shape), None, None)  # type: ignore[no-untyped-call]


class _LayerNormBackward(Function):
    r"""Gradients of ⟨g, y⟩ with respect to x, w and b: J(w g), Σ g x̂ and Σ g.

    J is the derivative of x̂, a symmetric matrix in each row of n entries.

    .. math:: J = r \left(I - \frac{\mathbf 1 \mathbf 1^\top + \hat x \hat x^\top}{n}\right)
    """

    @staticmethod
    def forward(
        ctx: Any, g: Tensor, x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, scale: Tensor, shape: list[int]
    ) -> Any:
        found = torch.ops.aten.native_layer_norm_backward(
            g.contiguous(), x, shape, mean, scale, weight, bias, [True, True, True]
        )
        ctx.save_for_backward(g, x, weight, mean, scale, found[0])
        ctx.shape, ctx.fixed = shape, None
        return found

    @staticmethod
    def backward(ctx: Any, x_dual: Tensor, w_dual: Tensor, b_dual: Tensor) -> Any:
        r"""Derivatives of S = ⟨u, J(wg)⟩ + ⟨v, Σ g x̂⟩ + ⟨t, Σ g⟩ for the duals u, v and t of the three gradients.

        .. math:: \frac{\partial S}{\partial g} = w Ju + v \hat x + t, \qquad
                  \frac{\partial S}{\partial w} = \sum g Ju, \qquad
                  \frac{\partial S}{\partial x} = J(vg) - \frac rn \bigl(\langle u, J(wg)\rangle\, \hat x
                  + \langle u, \hat x\rangle\, J(wg) + \langle wg, \hat x\rangle\, Ju\bigr)
        """
        g, x, weight, mean, scale, x_gradient = ctx.saved_tensors
        axes = tuple(range(-len(ctx.shape), 0))
        if ctx.fixed is None:
            normed = (x - mean) * scale
            ctx.fixed = normed, scale / weight.numel(), (weight * g * normed).sum(axes, keepdim=True)
        normed, factor, product = ctx.fixed
        turned = _turned(x_dual, x, ctx.shape, mean, scale, None)
        g_part = torch.addcmul(b_dual, turned, weight).addcmul_(normed, w_dual)
        w_part = (g * turned).flatten(0, -len(ctx.shape) - 1).sum(0) if g.ndim > len(ctx.shape) else g * turned
        x_part = _turned(g, x, ctx.shape, mean, scale, w_dual)
        inner = torch.addcmul(product * turned, normed, (x_dual * x_gradient).sum(axes, keepdim=True))
        inner.addcmul_(x_gradient, (x_dual * normed).sum(axes, keepdim=True))
        return g_part, x_part.addcmul_(inner, factor, value=-1), w_part, None, None, None, None


def _turned(g: Tensor, x: Tensor, shape: list[int], mean: Tensor, scale: Tensor, weight: Tensor | None) -> Tensor:
    """The vector J(weight g), by PyTorch's fused backward."""
    weight = None if weight is None else weight.contiguous()
    found: Tensor = torch.ops.aten.native_layer_norm_backward(
        g.contiguous(), x, shape, mean, scale, weight, None, [True, False, False]
    )[0]
    return found
