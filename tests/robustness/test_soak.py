"""A short version of every attack, in a process of its own because it limits its memory and is forked."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


ROOT = Path(__file__).parents[2]


def test_a_slice_of_the_attacks_loses_nothing():
    for package in ("torch", "joblib", "PIL"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    words = [sys.executable, "-m", "robustness.soak", "--slice"]
    path = os.pathsep.join((str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    found = subprocess.run(
        words, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr
    (total,) = re.findall(r"^all +([\d,]+) +([\d,]+) +(\d+) +(\d+)$", found.stdout, re.MULTILINE)
    cases, survived, rows_lost, wrong_values = (int(number.replace(",", "")) for number in total)
    assert cases == survived > 1000
    assert rows_lost == wrong_values == 0
