import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from eigencurve._heap import keep_freed_memory
from eigencurve.experiments.engine.pool import results
from eigencurve.experiments.engine.request import Workers

linux = pytest.mark.skipif(
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


def kept_faults():
    assert keep_freed_memory()
    return faults()


def count(_task):
    return faults()


def worker_faults():
    return max(results(Workers(2), count, iter(("first", "second"))))


def counted(way):
    """What ``way`` counts in a process of its own, from the thresholds that glibc begins with."""
    program = f"from tests.test_heap import {way}; print({way}())"
    fixed = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
    fixed["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run([sys.executable, "-c", program], env=fixed, capture_output=True, text=True, check=True)
    return int(ended.stdout)


@linux
@pytest.mark.parametrize("way", ["kept_faults", "worker_faults"])
def test_freed_memory_is_kept_where_asked_and_by_workers(way):
    assert counted(way) < counted("faults") / 10


def test_elsewhere_it_says_that_it_could_not(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()


@pytest.mark.parametrize("workers", [Workers(1), Workers(2, "sequential")])
def test_this_process_is_left_as_it_is(workers, monkeypatch):
    monkeypatch.setattr("eigencurve._heap.ctypes.CDLL", None)  # would raise
    assert sorted(results(workers, abs, iter((0, -1, -2)))) == [0, 1, 2]
