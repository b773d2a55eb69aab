import os
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.page_faults import faults, faults_of, needs_glibc
from threadpoolctl import threadpool_info, threadpool_limits

import eigencurve as ec
from eigencurve._process import end_with_parent, keep_freed_memory, on_one_blas_thread
from eigencurve.forecast import LoggedRun, fit_runs
from eigencurve.spectrum.quadrature import sharpen
from eigencurve.theory import optimal

PATIENCE = 60
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
print(child.stdout.readline().strip(), flush=True)
time.sleep(600)
"""
CHILD = """
import os, time
from eigencurve._process import end_with_parent
end_with_parent(os.getppid())
print(os.getpid(), flush=True)
time.sleep(600)
"""


def is_alive(pid):
    """Whether the process runs; one that has ended and waits for its parent does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_the_end(pid):
    deadline = time.monotonic() + PATIENCE
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_alive(pid)


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc to look at processes")
def test_a_child_ends_with_a_parent_that_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert is_alive(child)
    parent.kill()
    parent.communicate()
    assert wait_for_the_end(child)


def test_the_parent_itself_is_left_alone():
    end_with_parent(os.getpid())
    time.sleep(1.0)  # twice the time between two looks


def faults_with_kept_memory():
    assert keep_freed_memory()
    return faults()


@needs_glibc
def test_freed_memory_is_kept_when_asked():
    assert faults_of(faults_with_kept_memory) < faults_of(faults) / 10


def test_other_systems_return_false(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.mark.usefixtures("two_threads")
def test_the_limit_holds_within_the_call_only():
    assert on_one_blas_thread(blas_threads)() == {1}
    assert blas_threads() == {2}
    with pytest.raises(ZeroDivisionError):
        on_one_blas_thread(lambda: 1 / 0)()
    assert blas_threads() == {2}


def recorded(monkeypatch, name, module=np.linalg):
    """Number of threads at each call of a function."""
    seen, call = set(), getattr(module, name)

    def record(*args, **known):
        seen.update(blas_threads())
        return call(*args, **known)

    monkeypatch.setattr(module, name, record)
    return seen


@pytest.mark.usefixtures("two_threads")
def test_sharpening_uses_one_thread(monkeypatch):
    seen = recorded(monkeypatch, "solve")
    rng = np.random.default_rng(0)
    sharpen(1 + rng.random(20), 0.3 + 0.1 * rng.random(20), 5e-4)
    assert seen == {1}


@pytest.mark.usefixtures("two_threads")
def test_fitting_uses_one_thread(monkeypatch):
    seen = recorded(monkeypatch, "inv")
    steps = np.arange(1, 401)
    rates = {"constant": np.full(400, 1e-3), "linear": 1e-3 * (1 - steps / 401)}
    fit_runs([LoggedRun(steps, 2 + 3 * np.cumsum(rate / 1e-3) ** -0.5, rate) for rate in rates.values()])
    assert seen == {1}


@pytest.mark.usefixtures("two_threads")
def test_the_search_for_the_best_schedule_uses_one_thread(monkeypatch):
    seen = recorded(monkeypatch, "minimize", optimal)
    ec.NoisyQuadratic(ec.Spectrum([0.1, 1.0, 2.0], [3, 2, 1]), 1.0, 1.0).search_best(9, 0.5)
    assert seen == {1}
