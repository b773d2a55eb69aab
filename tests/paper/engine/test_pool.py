import os
import subprocess
import sys

import pytest
from tests.page_faults import faults, faults_of, needs_glibc
from tests.test_process import wait_for_the_end

from paper.engine.pool import results
from paper.engine.request import Workers


@pytest.mark.parametrize("workers", [Workers(1), Workers(2), Workers(1, "sequential")])
def test_every_task_has_its_result(workers):
    assert sorted(results(workers, abs, iter(range(-9, 0)))) == list(range(1, 10))


def test_a_task_is_taken_when_a_worker_is_free():
    taken = []
    found = results(Workers(1, "sequential"), abs, (taken.append(task) or task for task in (-1, -2, -3)))
    assert taken == []
    assert next(found) == 1
    assert taken == [-1]
    assert list(found) == [2, 3]


def count_faults(_task):
    return faults()


def faults_of_workers():
    return max(results(Workers(2), count_faults, iter(("first", "second"))))


@needs_glibc
def test_worker_processes_keep_freed_memory():
    assert faults_of(faults_of_workers) < faults_of(faults) / 10


@pytest.mark.parametrize("workers", [Workers(1), Workers(2, "sequential")])
def test_the_memory_of_this_process_is_not_affected(workers, monkeypatch):
    monkeypatch.setattr("eigencurve._process.ctypes.CDLL", None)  # would raise
    assert sorted(results(workers, abs, iter((0, -1, -2)))) == [0, 1, 2]


def test_a_missing_ray_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"needs Ray: pip install --requirement paper/requirements.txt"):
        next(results(Workers(1, "ray"), abs, iter((-1,))))


KILLED = """
import os, sys, time
from paper.engine.pool import results
from paper.engine.request import Workers
from tests.paper.engine.test_pool import pid
found = list(results(Workers(2), pid, iter(range(4))))
print(*set(found), flush=True)
time.sleep(600)
"""


def pid(_task):
    return os.getpid()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc to look at processes")
def test_idle_workers_end_with_a_parent_that_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, cwd=os.getcwd())
    workers = [int(word) for word in parent.stdout.readline().split()]
    assert workers
    parent.kill()
    parent.wait()
    assert all(wait_for_the_end(worker) for worker in workers)
    parent.stdout.close()
