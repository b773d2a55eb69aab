"""Experiments whose runs train one by one and resume from checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eigencurve.runs import Outcome, Run, key_of
from paper.training.checkpoint import checkpoint_for
from paper.training.devices import threads
from paper.training.launch import in_processes


@dataclass(frozen=True, eq=False)
class TrainingRuns:
    """Training runs, each by itself; a run that was killed resumes from its checkpoint."""

    name: str  # name of the experiment in the store, with a hash of the data, so runs on other data are other runs
    # `train_one(run, key, checkpoint)` trains one run; `checkpoint` is the file to resume from. It can be pickled.
    train_one: Callable[[Run, str, Path | None], Outcome]
    metric: str  # metric by which settings are chosen
    minimise: bool  # whether a smaller metric is better
    folder: Path | None = None  # folder for checkpoints of unfinished runs; None keeps none
    num_threads: int = 1  # Number of threads per run. Results are bit-identical for the same number of threads.
    num_processes: int = 1  # number of processes that share each run by splitting its batches

    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Every run by itself, the longest first."""
        return [[run] for run in sorted(runs, key=lambda run: -run.settings["epochs"])]

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Train the runs one after the other."""
        if self.num_processes > 1:
            return [in_processes(self.num_processes, self.run_one, run) for run in batch]
        return [self.run_one(run) for run in batch]

    def run_one(self, run: Run) -> Outcome:
        """Train one run, or this process's part of it."""
        key = key_of(self.name, run)
        with threads(self.num_threads), checkpoint_for(self.folder, key) as path:
            return self.train_one(run, key, path)
