r"""Convolutions and matrix products, whose derivatives of every order are convolutions and matrix products again.

A bilinear function y = B(x, w) belongs to a form that is linear in each of its three arguments,

.. math:: t(g, x, w) = \langle g, B(x, w) \rangle.

B and the gradients of x and w are its three partial derivatives, and the derivatives of these are partial derivatives
of the same form. For the second derivative of a convolution, PyTorch instead runs one with a kernel as large as the
image.

PyTorch multiplies matrices by MKL, which uses no AVX-512 on processors by AMD. There, oneDNN can be twice as fast.
A batch of products with few columns is slower than its transpose, with few rows.
"""

from __future__ import annotations

import functools
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

# The partial derivative of a form with respect to the argument 0, 1 or 2, given the two others in this order.
Form = Callable[[int, Tensor, Tensor], Tensor]

# Multiplications and additions that take longer than calling a function in Python.
WORTHWHILE = 1_000_000
# oneDNN is used if it is this many times as fast with square matrices of this size; they take turns this many times.
FASTER, TIMED_SIZE, TIMED_TURNS = 1.3, 256, 10


class _Partial(Function):
    """A partial derivative of a form."""

    @staticmethod
    def forward(ctx: Any, form: Form, index: int, first: Tensor, second: Tensor) -> Tensor:
        ctx.save_for_backward(first, second)
        ctx.form, ctx.index = form, index
        return form(index, first, second)

    @staticmethod
    def backward(ctx: Any, dual: Tensor) -> Any:
        others = [index for index in range(3) if index != ctx.index]
        arguments = {ctx.index: dual, **dict(zip(others, ctx.saved_tensors, strict=True))}
        needed = zip(others, ctx.needs_input_grad[2:], strict=True)
        return None, None, *(_partial(ctx.form, index, arguments) if is_needed else None for index, is_needed in needed)


def _partial(form: Form, index: int, arguments: dict[int, Tensor]) -> Tensor:
    first, second = (arguments[other] for other in range(3) if other != index)
    value: Tensor = _Partial.apply(form, index, first, second)  # type: ignore[no-untyped-call]
    return value


@dataclass(frozen=True)
class _ConvolutionForm:
    """The form of convolutions with these settings, of an input and a weight with these shapes and strides."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    groups: int
    inputs: tuple[Any, Any]
    weights: tuple[Any, Any]

    def __call__(self, index: int, first: Tensor, second: Tensor) -> Tensor:
        shared = self.stride, self.padding, self.dilation, False, [0] * len(self.stride), self.groups
        if index == 0:
            return torch.convolution(first, second, None, *shared)
        if index == 1:
            tensors = [first, first.new_empty_strided(*self.inputs), second]
        else:
            tensors = [first, second, first.new_empty_strided(*self.weights)]
        if first.device.type == "cpu" and crashes_channels_last(self.inputs[0][1], self.weights[0][2:], self.stride):
            tensors = [tensor.contiguous() for tensor in tensors]
        wanted = [index == 1, index == 2, False]
        gradients: list[Tensor] = torch.ops.aten.convolution_backward(*tensors, None, *shared, wanted)
        return gradients[index - 1]


def crashes_channels_last(num_inputs: int, kernel: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether oneDNN on CPUs (torch 2.13) writes out of bounds in the backward of such a channels-last convolution."""
    return tuple(kernel) == (1, 1) and max(stride) > 1 and num_inputs < 8


def convolution(x: Tensor, w: Tensor, stride: Any, padding: Any, dilation: Any, groups: int) -> Tensor:
    """The convolution of ``x``, a batch with any number of axes, with the kernels ``w``."""
    num_axes = x.ndim - 2
    if x.device.type == "cpu" and num_axes == 2:  # the layout that CPU convolutions read without a copy
        x = x.contiguous(memory_format=torch.channels_last)
    stride, padding, dilation = (_each(value, num_axes) for value in (stride, padding, dilation))
    form = _ConvolutionForm(stride, padding, dilation, groups, (x.shape, x.stride()), (w.shape, w.stride()))
    return _partial(form, 0, {1: x, 2: w})


def _each(value: Any, num_axes: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * num_axes if len(values) == 1 else values


def fast_product(a: Tensor, b: Tensor) -> Tensor | None:
    """The product ``a @ b`` of matrices or of batches of matrices; None if PyTorch's own is as good."""
    if not _is_replaceable(a, b):
        return None
    left, right = (a.flatten(0, -2), b) if b.ndim == 2 else (a.flatten(0, -3), b.flatten(0, -3))
    return _partial(_product_form, 0, {1: left, 2: right}).reshape(*a.shape[:-1], b.shape[-1])


def _product_form(index: int, first: Tensor, second: Tensor) -> Tensor:
    """The products a b, g bᵀ and aᵀ g."""
    if index == 2:
        return _multiplied(second.mT, first)
    return _multiplied(first, second if index == 0 else second.mT)


def _is_replaceable(a: Tensor, b: Tensor) -> bool:
    if not all(m.device.type == "cpu" and m.dtype == torch.float32 and m.layout == torch.strided for m in (a, b)):
        return False
    if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-2] or a.numel() * b.shape[-1] < WORTHWHILE:
        return False
    if torch.is_autocast_enabled("cpu") or not torch.backends.mkldnn.enabled:
        return False
    return is_onednn_faster() if b.ndim == 2 else a.shape[:-2] == b.shape[:-2]


@functools.cache
def is_onednn_faster() -> bool:
    """Whether oneDNN is clearly faster than ``torch.mm`` on this machine; measured once, in a few milliseconds.

    Both take turns and only their shortest times count, so other work on the machine does not change the answer. A run
    that resumes in another process then has the same rounding errors.
    """
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    a = torch.ones(TIMED_SIZE, TIMED_SIZE)
    calls = functools.partial(_by_onednn, a, a), functools.partial(torch.mm, a, a)
    turns = [[timeit.timeit(call, number=2) for call in calls] for _ in range(TIMED_TURNS)]
    ours, default = (min(times) for times in zip(*turns, strict=True))
    return bool(default > FASTER * ours)


def _multiplied(a: Tensor, b: Tensor) -> Tensor:
    """The product a b, computed as (bᵀ aᵀ)ᵀ if that is faster."""
    (num_rows, inner), num_columns = a.shape[-2:], b.shape[-1]
    if a.ndim == 3:
        return torch.bmm(b.mT, a.mT).mT if num_columns < num_rows else torch.bmm(a, b)
    return _by_onednn(b.mT, a.mT).mT if num_columns < num_rows < inner else _by_onednn(a, b)


def _by_onednn(a: Tensor, b: Tensor) -> Tensor:
    """The product a b by oneDNN, with the operator to which ``torch.compile`` lowers linear layers on CPUs."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(_dense(a), _dense(b).mT, None, "none", [], "")
    return product


def _dense(matrix: Tensor) -> Tensor:
    """``matrix`` without gaps between its rows, as in ``x[::2]``, with which oneDNN is hundreds of times slower."""
    return matrix if matrix.is_contiguous() or matrix.mT.is_contiguous() else matrix.contiguous()
