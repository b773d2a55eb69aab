"""The device and the number of threads of a training run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


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
