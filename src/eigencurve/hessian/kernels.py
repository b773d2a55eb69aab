"""Layers with a double backward that is as fast as their backward.

For the second derivative of a convolution, PyTorch runs a convolution with a kernel as large as the image. For layer
norm, and for batch norm in eval mode, it makes ten or more passes over the activations, and for smooth activations it
evaluates the function again in every product. Its fused LSTM has no second derivative. On some CPUs, oneDNN multiplies
matrices faster than PyTorch does. Within :class:`FastKernels`, they are replaced by functions with the same values, the
same derivatives and a cheaper double backward.
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

from eigencurve.hessian.activations import ACTIVATIONS, activation
from eigencurve.hessian.layer_norm import layer_norm
from eigencurve.hessian.matrix_products import fast_product
from eigencurve.hessian.recurrent import lstm

# Stride, padding, dilation, groups.
Settings = tuple[list[int], list[int], list[int], int]
MATMULS: tuple[Any, ...] = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.mm, torch.bmm)
CONVOLUTIONS: dict[Any, int] = {torch.conv1d: 1, torch.conv2d: 2, torch.conv3d: 3}


class FastKernels(TorchFunctionMode):
    """Mode in which the forward pass builds the cheaper graph; all other calls are unchanged."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Replace one call, or pass it on."""
        known = kwargs or {}
        if torch._C._are_functorch_transforms_active():  # they need more than a backward
            return func(*args, **known)
        if func in CONVOLUTIONS:
            return _convolution(func, CONVOLUTIONS[func], *args, **known)
        if func is F.batch_norm:
            return _batch_norm(func, *args, **known)
        if func in REPLACED and not _are_saved_tensors_hooked():
            return REPLACED[func](func, *args, **known)
        return func(*args, **known)


def _convolution(
    func: Callable[..., Tensor],
    num_axes: int,
    input: Tensor,  # noqa: A002 -- PyTorch's name
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    if isinstance(padding, str) or input.ndim != num_axes + 2 or input.dtype != weight.dtype:
        return func(input, weight, bias, stride, padding, dilation, groups)
    settings = (_each(stride, num_axes), _each(padding, num_axes), _each(dilation, num_axes), groups)
    result: Tensor = _Convolution.apply(_channels_last(input), weight, settings)  # type: ignore[no-untyped-call]
    return result if bias is None else result + bias.view(-1, *[1] * num_axes)


def _channels_last(x: Tensor) -> Tensor:
    """``x`` in the layout that CPU convolutions read directly; with any other, each of them makes a copy first."""
    if x.device.type != "cpu" or x.ndim != 4:
        return x
    return x.contiguous(memory_format=torch.channels_last)


def _each(value: Any, num_axes: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * num_axes if len(values) == 1 else values


def _forward(x: Tensor, w: Tensor, settings: Settings) -> Tensor:
    stride, padding, dilation, groups = settings
    return torch.convolution(x, w, None, stride, padding, dilation, False, [0] * len(stride), groups)


def _gradients(g: Tensor, x: Tensor, w: Tensor, settings: Settings, wanted: list[bool]) -> list[Tensor]:
    """Gradients of the input and of the weight, if wanted."""
    stride, padding, dilation, groups = settings
    outside = [0] * len(stride)
    if x.device.type == "cpu" and x.ndim == 4 and crashes_channels_last(x.shape[1], w.shape[2:], stride):
        g, x, w = g.contiguous(), x.contiguous(), w.contiguous()
    found: list[Tensor] = torch.ops.aten.convolution_backward(
        g, x, w, None, stride, padding, dilation, False, outside, groups, [*wanted, False]
    )
    return found


def crashes_channels_last(num_inputs: int, kernel: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether oneDNN on CPUs (torch 2.13) writes out of bounds in the backward of such a channels-last convolution."""
    return tuple(kernel) == (1, 1) and max(stride) > 1 and num_inputs < 8


class _Convolution(Function):
    """The convolution y = x * w. It is bilinear, so all its derivatives are convolutions too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, settings: Settings) -> Tensor:
        ctx.save_for_backward(x, w)
        ctx.settings = settings
        return _forward(x, w, settings)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, w = ctx.saved_tensors
        return (*_ConvolutionBackward.apply(g, x, w, ctx.settings, list(ctx.needs_input_grad[:2])), None)  # type: ignore[no-untyped-call]


class _ConvolutionBackward(Function):
    """Gradients of ⟨g, x * w⟩ with respect to x and w."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, x: Tensor, w: Tensor, settings: Settings, wanted: list[bool]) -> Any:
        ctx.save_for_backward(g, x, w)
        ctx.settings = settings
        ctx.set_materialize_grads(False)
        found = _gradients(g, x, w, settings, wanted)
        return found[0], found[1]

    @staticmethod
    def backward(ctx: Any, x_dual: Tensor | None, w_dual: Tensor | None) -> Any:
        g, x, w = ctx.saved_tensors
        g_part = x_part = w_part = None
        if x_dual is not None:
            g_part = _forward(x_dual, w, ctx.settings)
            w_part = _gradients(g, x_dual, w, ctx.settings, [False, True])[1]
        if w_dual is not None:
            other = _forward(x, w_dual, ctx.settings)
            g_part = other if g_part is None else g_part.add_(other)
            x_part = _gradients(g, x, w_dual, ctx.settings, [True, False])[0] if ctx.needs_input_grad[1] else None
        return g_part, x_part, w_part, None, None


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
        x, w, mean, var = ctx.saved_tensors
        return (*_FixedNormBackward.apply(g, x, w, mean, var, ctx.eps), None, None, None)  # type: ignore[no-untyped-call]


class _FixedNormBackward(Function):
    """Gradients of ⟨g, y⟩ with respect to x, w and b: w r g, r Σ g (x - m) and Σ g."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, x: Tensor, w: Tensor, mean: Tensor, var: Tensor, eps: float) -> Any:
        ctx.save_for_backward(g, x, w, mean, var)
        ctx.eps = eps
        return _norm_gradients(g, x, w, mean, var, eps, [True, True, True])

    @staticmethod
    def backward(ctx: Any, x_dual: Tensor, w_dual: Tensor, b_dual: Tensor) -> Any:
        g, x, w, mean, var = ctx.saved_tensors
        shape = [-1, *[1] * (g.ndim - 2)]
        scale = torch.rsqrt(var + ctx.eps)
        tilt = scale * w_dual
        g_part = torch.addcmul((b_dual - tilt * mean).view(shape), x_dual, (scale * w).view(shape))
        g_part = g_part.addcmul_(x, tilt.view(shape))
        # r Σ g·x_dual is the fused weight gradient with the mean set to zero.
        w_part = _norm_gradients(g, x_dual, w, torch.zeros_like(mean), var, ctx.eps, [False, True, False])[1]
        return g_part, g * tilt.view(shape), w_part, None, None, None


def _norm_gradients(
    g: Tensor, x: Tensor, w: Tensor, mean: Tensor, var: Tensor, eps: float, wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    found: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.native_batch_norm_backward(
        g, x, w, mean, var, None, None, False, eps, wanted
    )
    return found


def _layer_norm(
    func: Callable[..., Tensor],
    input: Tensor,  # noqa: A002 -- PyTorch's name
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    if weight is None or bias is None or not input.dtype == weight.dtype == bias.dtype:
        return func(input, normalized_shape, weight, bias, eps)
    return layer_norm(input.contiguous(), list(normalized_shape), weight, bias, eps)


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


def _addmm(func: Callable[..., Tensor], *args: Any, **known: Any) -> Tensor:
    product = fast_product(*args[1:]) if len(args) == 3 and not known else None
    return func(*args, **known) if product is None else args[0] + product


def _matmul(func: Callable[..., Tensor], *args: Any, **known: Any) -> Tensor:
    product = fast_product(*args) if len(args) == 2 and not known else None
    return func(*args, **known) if product is None else product


def _activation(
    func: Callable[..., Tensor],
    input: Tensor,  # noqa: A002 -- PyTorch's name
    *args: Any,
    **known: Any,
) -> Tensor:
    if args or known.get("inplace") or not input.is_floating_point():
        return func(input, *args, **known)
    return activation(functools.partial(func, **known), input)


def _lstm(func: Callable[..., Any], *args: Any, **known: Any) -> Any:
    if not _is_plain_lstm(*args, **known):
        return func(*args, **known)
    inputs, initial, weights, has_biases, num_layers, _, _, bidirectional, batch_first = args
    return lstm(inputs, initial, weights, has_biases, num_layers, bidirectional, batch_first)


def _is_plain_lstm(*args: Any, **known: Any) -> bool:
    """Whether a call of ``torch.lstm`` has no packed sequence, dropout, projection or mixed types."""
    if known or len(args) != 9 or isinstance(args[1], Tensor):
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


def _are_saved_tensors_hooked() -> bool:
    """Whether hooks handle the tensors that a layer saves, as in activation checkpointing.

    Checkpointing runs a layer again during the backward pass, where this mode is not active, and expects the layer to
    save the same tensors. These kernels save other tensors than PyTorch's.
    """
    try:
        with torch.autograd.graph.disable_saved_tensors_hooks(""):
            return False
    except RuntimeError:
        return True


# Layers that save other tensors for their backward than PyTorch's own. Convolutions and batch norms save the same.
REPLACED: dict[Any, Callable[..., Any]] = {
    F.layer_norm: _layer_norm,
    F.linear: _linear,
    torch.addmm: _addmm,
    **dict.fromkeys(MATMULS, _matmul),
    torch.lstm: _lstm,
    torch._weight_norm: _weight_norm,
    **dict.fromkeys(ACTIVATIONS, _activation),
}
