"""Run tasks on processes of this machine or on a Ray cluster, through the same joblib calls."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import joblib

from eigencurve.hessian import keep_freed_memory
from paper.engine.request import Workers

LOOK_SECONDS = 0.5
Task = TypeVar("Task")
Result = TypeVar("Result")


def end_with_parent(parent: int) -> None:
    """End this process soon after the process ``parent``, which started it, has ended, even by kill -9."""
    if os.getpid() != parent:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(1)


def results(workers: Workers, function: Callable[[Task], Result], tasks: Iterator[Task]) -> Iterator[Result]:
    """Yield ``function(task)`` for each task, in order of completion; a task is taken when a worker becomes free.

    joblib's Ray backend cannot return results one by one, so with Ray the tasks are sent in small groups.
    """
    calls = (joblib.delayed(function)(task) for task in tasks)
    if workers.backend != "ray":
        settings: dict[str, Any] = {
            "backend": workers.backend, "return_as": "generator_unordered", "pre_dispatch": "2*n_jobs",
            # Runs in new worker processes only; this process is not affected.
            "initializer": _prepare_worker, "initargs": (os.getpid(),),
        }  # fmt: skip
        yield from joblib.Parallel(n_jobs=workers.count, batch_size=1, **settings)(calls)
        return
    group_size = 2 * _join_cluster(workers)
    with joblib.Parallel(n_jobs=workers.count, backend="ray", batch_size=1) as pool:
        while group := list(islice(calls, group_size)):
            yield from pool(group)


def _prepare_worker(parent: int) -> None:
    """Set up a worker process, which mostly trains networks."""
    keep_freed_memory()
    end_with_parent(parent)


def _join_cluster(workers: Workers) -> int:
    """Connect to the cluster if not yet connected, and return the number of workers."""
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise ImportError("backend='ray' needs Ray: pip install --requirement paper/requirements.txt") from error
    if not ray.is_initialized():
        count = None if workers.address or workers.count == -1 else workers.count
        ray.init(address=workers.address, num_cpus=count, log_to_driver=False, logging_level="error")
    register_ray()
    return int(ray.cluster_resources().get("CPU", 1)) if workers.count == -1 else workers.count


def in_new_process(function: Callable[..., Result], *arguments: Any) -> Result:
    """``function(*arguments)`` in a process of its own, whose peak memory is that of this call."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()
