"""Settings of the running process: BLAS threads, freed memory, and an end together with the parent process."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# The largest M_MMAP_THRESHOLD puts tensors on the heap; M_TRIM_THRESHOLD keeps the heap from shrinking.
GLIBC_KEEPS = {-3: 32 * 2**20, -1: 2**31 - 1}
LOOK_SECONDS = 0.5


def on_one_blas_thread(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run ``function`` with one BLAS thread, and restore their number afterwards.

    With a thread per core, the threads of a BLAS spend more time waiting for each other than computing if the matrices
    are small; on a busy machine, a fit that takes a second can take minutes.
    """

    @wraps(function)
    def limited(*args: Arguments.args, **named: Arguments.kwargs) -> Result:
        with threadpool_limits(1, user_api="blas"):
            return function(*args, **named)

    return limited


def keep_freed_memory() -> bool:
    """Make glibc keep the memory that this process frees, and return whether that was possible.

    A Hessian product or a training step on a CPU allocates and frees about a hundred large tensors. By default glibc
    returns much of that memory to the system, which hands it out again page by page, filled with zeros. On a ResNet-20
    this costs a tenth to a fifth of the time of a product. The setting affects the whole process, so only programs
    should change it, as ``eigencurve estimate`` and the worker processes of ``paper`` do, and libraries should not.
    The peak memory does not change, but it is held until the process ends.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    return mallopt is not None and all(mallopt(setting, value) == 1 for setting, value in GLIBC_KEEPS.items())


def end_with_parent(parent: int) -> None:
    """End this process soon after the process ``parent``, which started it, has ended, even by kill -9.

    A thread looks every half second. Linux can send a signal instead, but sends it already when the thread of the
    parent that started the child has ended.
    """
    if os.getpid() != parent:
        threading.Thread(target=_watch, args=(parent,), name="end-with-parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(1)
