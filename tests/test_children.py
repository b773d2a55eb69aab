import os
import subprocess
import sys
import time

import pytest

from eigencurve._children import end_with_parent

PATIENCE = 60
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
print(child.stdout.readline().strip(), flush=True)
time.sleep(600)
"""
CHILD = """
import os, time
from eigencurve._children import end_with_parent
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
