"""The device, the number of threads and the precision of a training run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten
# The operations that take long without kernels for bfloat16; the others convert numbers as they read them.
PRODUCTS = frozenset(
    {aten.convolution.default, aten.convolution_backward.default}
    | {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default}
)


def num_gpus() -> int:
    """Number of processes for a large run: one per GPU, or one if there is no GPU."""
    return max(1, torch.cuda.device_count())


def own_device() -> torch.device:
    """The device of this process: its rank's GPU under torchrun, else a GPU chosen by process id, else the CPU."""
    count = torch.cuda.device_count()
    if not count:
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", os.getpid())) % count)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let PyTorch use ``count`` threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class ProductsInFloat32(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside the block, products of bfloat16 tensors use the kernels of float32, and their results are rounded.

    Kernels for bfloat16 sum in float32 and round the result, so only the order of the sums differs. A processor without
    AVX-512 has no such kernels, and what PyTorch uses instead is slow (``python -m benchmarks.precision``).
    """

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run one operation."""
        if func not in PRODUCTS or not any(_is_half(value) for value in args):
            return func(*args, **(kwargs or {}))
        return _converted(func(*_converted(args, torch.float32), **(kwargs or {})), torch.bfloat16)


def half_type(precision: str, device: torch.device) -> torch.dtype | None:
    """The 16-bit type of mixed precision on ``device``; None for full precision."""
    if precision == "bfloat16":
        return torch.bfloat16
    if precision == "float32" or device.type != "cuda":
        return None
    return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16


def kernels_for(half: torch.dtype | None, device: torch.device) -> AbstractContextManager[Any]:
    """The block in which forward and backward passes run, for the 16-bit type of their mixed precision."""
    is_slow = half is torch.bfloat16 and device.type == "cpu" and not has_bfloat16_kernels()
    return ProductsInFloat32() if is_slow else nullcontext()  # type: ignore[no-untyped-call]


def has_bfloat16_kernels() -> bool:
    """Whether PyTorch has kernels for bfloat16 products on this processor."""
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(available and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _is_half(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16


def _converted(values: Any, dtype: torch.dtype) -> Any:
    """The tensors among ``values`` in another type, if they are bfloat16 or float32."""
    both = (torch.bfloat16, torch.float32)
    return tree_map_only(torch.Tensor, lambda tensor: tensor.to(dtype) if tensor.dtype in both else tensor, values)
