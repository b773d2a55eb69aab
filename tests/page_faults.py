"""Count the memory pages that the system hands out to a process."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

needs_glibc = pytest.mark.skipif(
    sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="the C library is not glibc"
)


def faults():
    """How many pages the system hands out while large arrays come and go, after a first round of them."""
    import resource  # not on Windows

    rounds = []
    for _ in range(40):
        parts = [np.ones(2_000_000, np.float32) for _ in range(8)]
        del parts
        rounds.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
    return rounds[-1] - rounds[19]


def faults_of(function):
    """What ``function`` returns in a process of its own, which begins with glibc's default thresholds."""
    program = f"from {function.__module__} import {function.__name__} as count; print(count())"
    fixed = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
    fixed["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run([sys.executable, "-c", program], env=fixed, capture_output=True, text=True, check=True)
    return int(ended.stdout)
