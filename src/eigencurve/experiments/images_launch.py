"""One training run in several processes of this machine, a GPU for each, as torchrun would start them."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from eigencurve.experiments.training import free_the_group

Result = TypeVar("Result")


def num_gpus() -> int:
    """How many processes a large run should have: one for every GPU, and one where there is none."""
    return max(1, torch.cuda.device_count())


def own_device() -> torch.device:
    """The device of this process: under torchrun the GPU of its rank; of other processes, GPUs in turn."""
    count = torch.cuda.device_count()
    if not count:
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", os.getpid())) % count)


def in_processes(count: int, function: Callable[..., Result], *arguments: Any) -> Result:
    """What ``function(*arguments)`` gives in the first of ``count`` processes that work together.

    Both must be importable or picklable: the processes begin anew.

    Raises:
        RuntimeError: one of them failed, with its error's last line; the whole is the cause.
    """
    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=count, run_id=f"eigencurve-{os.getpid()}", rdzv_backend="c10d",
        rdzv_endpoint="localhost:0", max_restarts=0, monitor_interval=0.2,
    )  # fmt: skip
    try:
        results: dict[int, Result] = elastic_launch(config, _joined)(function, arguments)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        raise RuntimeError(f"Process {rank} of {count} failed: {_last_line(failure.message)}") from error
    return results[0]


def _last_line(message: Any) -> str:
    """The error itself: PyTorch keeps an exception as a mapping, a signal as a sentence."""
    text = message["message"] if isinstance(message, dict) else message
    return str(text).strip().splitlines()[-1]


def _joined(function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        return function(*arguments)
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        free_the_group()
        dist.destroy_process_group()
