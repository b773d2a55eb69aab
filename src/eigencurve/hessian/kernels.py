"""Layers with a double backward that is as fast as their backward.

Within :class:`FastKernels`, convolutions, batch norms in eval mode, smooth activations and LSTMs, and on some CPUs
matrix products, are replaced by functions with the same values, the same derivatives and a cheaper double backward.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from eigencurve.hessian.bilinear import convolution, fast_product
from eigencurve.hessian.recurrent import lstm

# A function of one tensor, entry by entry.
Pointwise = Callable[[Tensor], Tensor]


class FastKernels(TorchFunctionMode):
    """Mode in which the forward pass builds the cheaper graph; all other calls are unchanged."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Replace one call, or pass it on."""
        options, kernel = kwargs or {}, KERNELS.get(func)
        if kernel is None or torch._C._are_functorch_transforms_active():  # transforms need more than a backward
            return func(*args, **options)
        if func not in SAVE_THE_SAME and _are_saved_tensors_hooked():
            return func(*args, **options)
        return kernel(func, *args, **options)


def _are_saved_tensors_hooked() -> bool:
    """Whether hooks handle the tensors that a layer saves, as in activation checkpointing.

    Checkpointing runs a layer again during the backward pass, where this mode is not active, and expects the layer to
    save the same tensors.
    """
    try:
        with torch.autograd.graph.disable_saved_tensors_hooks(""):
            return False
    except RuntimeError:
        return True


def _convolution(
    func: Callable[..., Tensor],
    input: Tensor,  # noqa: A002 -- PyTorch's name
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    if isinstance(padding, str) or input.ndim != weight.ndim or input.dtype != weight.dtype:
        return func(input, weight, bias, stride, padding, dilation, groups)
    result = convolution(input, weight, stride, padding, dilation, groups)
    return result if bias is None else result + bias.view(-1, *[1] * (input.ndim - 2))


def _batch_norm(
    func: Callable[..., Tensor],
    input: Tensor,  # noqa: A002 -- PyTorch's name
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if training or running_mean is None or running_var is None or weight is None or bias is None or input.ndim < 3:
        return func(input, running_mean, running_var, weight, bias, training, momentum, eps)
    result: Tensor = _FixedNorm.apply(input, weight, bias, running_mean, running_var, eps)  # type: ignore[no-untyped-call]
    return result


class _FixedNorm(Function):
    """y = w r (x - m) + b per channel, with fixed m and r = 1/√(v + ε)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor, mean: Tensor, var: Tensor, eps: float) -> Tensor:
        ctx.save_for_backward(x, w, mean, var)
        ctx.eps = eps
        return torch.native_batch_norm(x, w, b, mean, var, False, 0.0, eps)[0]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return (*_FixedNormBackward.apply(g, *ctx.saved_tensors, ctx.eps), None, None, None)  # type: ignore[no-untyped-call]


class _FixedNormBackward(Function):
    """Gradients of ⟨g, y⟩ with respect to x, w and b: w r g, r Σ g (x - m) and Σ g."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, x: Tensor, w: Tensor, mean: Tensor, var: Tensor, eps: float) -> Any:
        ctx.save_for_backward(g, x, w, mean, var)
        ctx.eps = eps
        return _norm_gradients(g, x, w, mean, var, eps)

    @staticmethod
    def backward(ctx: Any, x_dual: Tensor, w_dual: Tensor, b_dual: Tensor) -> Any:
        g, x, w, mean, var = ctx.saved_tensors
        shape = [-1, *[1] * (g.ndim - 2)]
        scale = torch.rsqrt(var + ctx.eps)
        tilt = scale * w_dual
        g_part = torch.addcmul((b_dual - tilt * mean).view(shape), x_dual, (scale * w).view(shape))
        g_part = g_part.addcmul_(x, tilt.view(shape))
        # r Σ g·x_dual is the fused weight gradient with the mean set to zero.
        w_part = _norm_gradients(g, x_dual, w, torch.zeros_like(mean), var, ctx.eps, only_weight=True)[1]
        return g_part, g * tilt.view(shape), w_part, None, None, None


def _norm_gradients(
    g: Tensor, x: Tensor, w: Tensor, mean: Tensor, var: Tensor, eps: float, only_weight: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    gradients: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.native_batch_norm_backward(
        g, x, w, mean, var, None, None, False, eps, [not only_weight, True, not only_weight]
    )
    return gradients


def _activation(
    func: Pointwise,
    input: Tensor,  # noqa: A002 -- PyTorch's name
    *args: Any,
    **options: Any,
) -> Tensor:
    if args or options.get("inplace") or not input.is_floating_point():
        return func(input, *args, **options)
    value: Tensor = _Activation.apply(input, functools.partial(func, **options))  # type: ignore[no-untyped-call]
    return value


class _Activation(Function):
    """The value φ(x). Its gradient g φ'(x) is a product with a function of the same kind, evaluated once a graph."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Pointwise) -> Tensor:
        ctx.save_for_backward(x)
        ctx.function, ctx.slope = function, None
        return function(x).detach()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        if ctx.slope is None or torch.is_grad_enabled():
            derivative = functools.partial(_derivative, ctx.function)
            ctx.slope = _Activation.apply(ctx.saved_tensors[0], derivative)  # type: ignore[no-untyped-call]
        return g * ctx.slope, None


def _derivative(function: Pointwise, x: Tensor) -> Tensor:
    """The derivative of a function that acts on each entry alone."""
    with torch.enable_grad():
        point = x if x.requires_grad else x.detach().requires_grad_()
        value = function(point)
        return torch.autograd.grad(value, point, torch.ones_like(value), create_graph=True)[0]


def _linear(
    func: Callable[..., Tensor],
    input: Tensor,  # noqa: A002 -- PyTorch's name
    weight: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    product = fast_product(input, weight.mT) if weight.ndim == 2 else None
    if product is None:
        return func(input, weight, bias)
    return product if bias is None else product + bias


def _addmm(func: Callable[..., Tensor], *args: Any, **options: Any) -> Tensor:
    product = fast_product(*args[1:]) if len(args) == 3 and not options else None
    return func(*args, **options) if product is None else args[0] + product


def _matmul(func: Callable[..., Tensor], *args: Any, **options: Any) -> Tensor:
    product = fast_product(*args) if len(args) == 2 and not options else None
    return func(*args, **options) if product is None else product


def _lstm(func: Callable[..., Any], *args: Any, **options: Any) -> Any:
    if not _is_plain_lstm(*args, **options):
        return func(*args, **options)
    inputs, initial, weights, has_biases, num_layers, _, _, bidirectional, batch_first = args
    return lstm(inputs, initial, weights, has_biases, num_layers, bidirectional, batch_first)


def _is_plain_lstm(*args: Any, **options: Any) -> bool:
    """Whether a call of ``torch.lstm`` has no packed sequence, dropout, projection or mixed types."""
    if options or len(args) != 9 or isinstance(args[1], Tensor):
        return False
    inputs, initial, weights, _, num_layers, dropout, training, *_ = args
    same_type = all(value.dtype == inputs.dtype for value in (*initial, *weights))
    drops = training and dropout > 0 and num_layers > 1
    return same_type and not drops and 4 * weights[1].shape[1] == len(weights[1])


def _weight_norm(func: Callable[..., Tensor], v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """W = g v / |v|. PyTorch's kernel takes the norm as a constant in its double backward."""
    if not v.is_floating_point():
        return func(v, g, dim)
    return v * (g / torch.norm_except_dim(v, 2, dim))


# These save the same tensors for their backward as PyTorch's own layers.
SAVE_THE_SAME = (torch.conv1d, torch.conv2d, torch.conv3d, F.batch_norm)
# Piecewise linear activations such as ReLU are fast enough.
ACTIVATIONS = (F.gelu, F.silu, F.mish, F.softplus, torch.tanh, Tensor.tanh, torch.sigmoid, Tensor.sigmoid)
KERNELS: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(SAVE_THE_SAME, _convolution),
    F.batch_norm: _batch_norm,
    F.linear: _linear,
    torch.addmm: _addmm,
    **dict.fromkeys((torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.mm, torch.bmm), _matmul),
    torch.lstm: _lstm,
    torch._weight_norm: _weight_norm,
    **dict.fromkeys(ACTIVATIONS, _activation),
}
