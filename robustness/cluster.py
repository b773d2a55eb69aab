"""A Ray worker that is lost in the middle of a grid: the table must be the same."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from robustness.counts import Counts
from tests.paper.engine.toy import Toy

from eigencurve.runs.store import Run, Store
from paper.engine.protocol import execute
from paper.engine.request import Workers

ROOT = Path(__file__).parents[1]
RUNS = [Run({"x": x}, seed) for x in range(4) for seed in range(3)]


def attack(folder: Path, times: int) -> Counts:
    """Lose one worker ``times`` times."""
    counts = Counts("a lost Ray worker")
    if importlib.util.find_spec("ray") is None:
        counts.notes.append("left out: Ray is not installed")
        return counts
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    import ray

    expected = execute(Toy(str(folder / "log")), RUNS, Store(folder / "plain.sqlite"), Workers(1, "sequential"))
    try:
        for number in range(times):
            toy = Toy(str(folder / "log"), kill_once=str(folder / f"killed-{number}"))
            found = execute(toy, RUNS, Store(folder / f"{number}.sqlite"), Workers(2, "ray"))
            counts.cases += 1
            counts.wrong_values += found != expected
            counts.survived += found == expected and (folder / f"killed-{number}").exists()
    finally:
        ray.shutdown()
    return counts
