"""A small experiment for the engine's tests; a module, so that worker processes can import it."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from eigencurve.runs.store import Outcome


@dataclass(frozen=True)
class Toy:
    """The score of x is (x - 3)^2 plus a little of the seed; x = 99 diverges, x = -1 is an error.

    ``log`` collects a line for each run; ``kill_once`` names a file that the first run of x = 2 makes before it
    kills its own process; ``seconds`` is how long a run takes.
    """

    log: str
    kill_once: str = ""
    seconds: float = 0.0
    name: str = "toy"
    metric: str = "score"
    minimise: bool = True

    def batches(self, runs):
        return [[run] for run in runs]

    def run(self, batch):
        return [self.one(run) for run in batch]

    def one(self, run):
        x = run.settings["x"]
        if x == 2 and self.kill_once and not os.path.exists(self.kill_once):
            Path(self.kill_once).touch()
            os.kill(os.getpid(), 9)
        if x == -1:
            raise ArithmeticError("x is negative")
        time.sleep(self.seconds)
        with open(self.log, "a") as file:
            file.write(f"{x} {run.seed}\n")
        if x == 99:
            return Outcome({"score": 1e300}, diverged=True)
        return Outcome({"score": (x - 3) ** 2 + run.seed / 1000}, ((0.0, 1.0),))
