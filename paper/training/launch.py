"""One training run in several processes of this machine, one GPU each, as torchrun would start them."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from paper.engine.pool import end_with_parent
from paper.training.loop import free_the_group

Result = TypeVar("Result")


def in_processes(count: int, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call ``function(*arguments)`` in ``count`` cooperating processes and return the result of the first.

    The function must be importable and the arguments picklable, because the processes start afresh.

    Raises:
        RuntimeError: A process failed. The message is the error of the process that failed first.
    """
    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=count, run_id=f"eigencurve-{os.getpid()}", rdzv_backend="c10d",
        rdzv_endpoint="localhost:0", max_restarts=0, monitor_interval=0.2,
    )  # fmt: skip
    with TemporaryDirectory() as folder:
        try:
            results: dict[int, Result] = elastic_launch(config, _joined)(os.getpid(), Path(folder), function, arguments)
        except ChildFailedError as error:
            raise RuntimeError(_first_reason(Path(folder)) or str(error)) from error
    return results[0]


def _first_reason(folder: Path) -> str:
    """The message of the process that failed first; empty if it was killed."""
    return min(((path.name, path.read_text()) for path in folder.iterdir()), default=("", ""))[1]


def _joined(parent: int, folder: Path, function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    end_with_parent(parent)
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        return function(*arguments)
    except BaseException as error:
        # Written before this process leaves the group: then the others fail too, and PyTorch may report their errors.
        reason = traceback.format_exception_only(error)[-1].strip()
        told = f"Process {dist.get_rank()} of {dist.get_world_size()} failed: {reason}"
        (folder / f"{time.time_ns():020d}").write_text(told)
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        free_the_group()
        dist.destroy_process_group()
