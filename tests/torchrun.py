"""Programs of the tests in processes of their own: one process, or two that torchrun starts on this machine."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_in_two(program, *arguments):
    """Run the file ``program``, which may import the tests, and fail with all that it printed where it fails."""
    _run(["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"], program, arguments)


def run_alone(program, *arguments):
    """Run the file ``program`` in one new process, where it may fork, and fail with all that it printed."""
    _run([], program, arguments)


def _run(options, program, arguments):
    ended = subprocess.run(
        [sys.executable, *options, str(program), *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
