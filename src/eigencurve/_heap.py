"""What the C library does with memory that is freed."""

from __future__ import annotations

import ctypes
import sys

# M_MMAP_THRESHOLD at its largest, so that tensors come from the heap, and M_TRIM_THRESHOLD, so that the heap stays.
GLIBC_KEEPS = {-3: 32 * 2**20, -1: 2**31 - 1}


def keep_freed_memory() -> bool:
    """Have glibc keep the memory that this process frees, from now on; whether it could be asked to.

    A Hessian product or a training step on a CPU frees and takes some hundred large tensors. By default glibc gives
    much of that back to the system, which hands it out again page by page, filled with zeros: a tenth to a fifth of a
    product's time on a ResNet-20. The setting is the whole process's, so only programs make it, as
    ``eigencurve estimate`` and the worker processes of experiments do; a library must not. The peak of memory stays
    what it was; it is held until the process ends.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    return mallopt is not None and all(mallopt(setting, value) == 1 for setting, value in GLIBC_KEEPS.items())
