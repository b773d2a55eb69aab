"""Products of large float32 matrices on CPUs, in the order and by the library that are fastest.

PyTorch multiplies matrices by MKL, which uses no AVX-512 on processors by AMD. There, oneDNN can be twice as fast. And
MKL can be several times slower if a batch of products has few columns than if it has few rows.
"""

from __future__ import annotations

import functools
import timeit
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

# Multiplications and additions that take longer than calling a function in Python.
WORTHWHILE = 1_000_000
# oneDNN is used if it is this many times as fast with square matrices of this size; they take turns this many times.
FASTER, TIMED_SIZE, TIMED_TURNS = 1.3, 256, 10


def fast_product(a: Tensor, b: Tensor) -> Tensor | None:
    """The product ``a @ b`` of matrices or of batches of matrices; None if PyTorch's own is as good."""
    if not _is_replaceable(a, b):
        return None
    left, right = (a.flatten(0, -2), b) if b.ndim == 2 else (a.flatten(0, -3), b.flatten(0, -3))
    product: Tensor = _Product.apply(left, right)  # type: ignore[no-untyped-call]
    return product.reshape(*a.shape[:-1], b.shape[-1])


def _is_replaceable(a: Tensor, b: Tensor) -> bool:
    if not (a.device.type == b.device.type == "cpu" and a.dtype == b.dtype == torch.float32):
        return False
    if a.layout != torch.strided or b.layout != torch.strided or torch.is_autocast_enabled("cpu"):
        return False
    if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-2] or a.numel() * b.shape[-1] < WORTHWHILE:
        return False
    if b.ndim == 2:
        return bool(torch.backends.mkldnn.enabled) and is_onednn_faster()
    return a.shape[:-2] == b.shape[:-2]


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


class _Product(Function):
    """The product y = a b. It is bilinear, so all its derivatives are matrix products too."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return _multiplied(a, b)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _ProductBackward.apply(g, *ctx.saved_tensors, ctx.needs_input_grad)  # type: ignore[no-untyped-call]


class _ProductBackward(Function):
    """Gradients of ⟨g, a b⟩ with respect to a and b: g bᵀ and aᵀ g."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, a: Tensor, b: Tensor, wanted: tuple[bool, bool]) -> Any:
        ctx.save_for_backward(g, a, b)
        ctx.set_materialize_grads(False)
        return _multiplied(g, b.mT) if wanted[0] else None, _multiplied(a.mT, g) if wanted[1] else None

    @staticmethod
    def backward(ctx: Any, a_dual: Tensor | None, b_dual: Tensor | None) -> Any:
        g, a, b = ctx.saved_tensors
        g_part = a_part = b_part = None
        if a_dual is not None:
            g_part = _multiplied(a_dual, b)
            b_part = _multiplied(a_dual.mT, g) if ctx.needs_input_grad[2] else None
        if b_dual is not None:
            other = _multiplied(a, b_dual)
            g_part = other if g_part is None else g_part.add_(other)
            a_part = _multiplied(g, b_dual.mT) if ctx.needs_input_grad[1] else None
        return g_part, a_part, b_part, None


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
    """``matrix`` without gaps between its rows, as those of ``x[::2]``; oneDNN is hundreds of times slower there."""
    return matrix if matrix.is_contiguous() or matrix.mT.is_contiguous() else matrix.contiguous()
