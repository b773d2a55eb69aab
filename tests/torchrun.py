"""A program run by torchrun in two processes of this machine."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_in_two(program, *arguments):
    """Run the file ``program``, which may import the tests, and fail with all that it printed where it fails."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    ended = subprocess.run(
        [*command, str(program), *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
