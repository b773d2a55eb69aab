"""The real runs of one problem, kept in the store: SGD from some start under some schedule."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from eigencurve import Schedule, schedule_from_dict
from eigencurve.runs import Outcome, Run
from paper.arrays import Array
from paper.prediction.least_squares import expected_gaps
from paper.prediction.problems import Problem
from paper.prediction.replicas import curve_marks, excess_losses
from paper.ridge.experiment import RidgeProblem
from paper.training.devices import threads

# A run diverged if its excess loss exceeds the initial one by this factor, or is not finite.
EXPLOSION = 1e3


@dataclass(frozen=True, eq=False)
class PredictedRuns:
    """Runs of a problem; the settings are the name of the ``start`` and the ``schedule`` as a plain dictionary."""

    problem: Problem  # the problem
    seeds_together: int  # number of seeds that run at once
    metric: str = "excess"
    minimise: bool = True

    @property
    def name(self) -> str:
        """``prediction``, the name of the problem and a hash of it."""
        return f"prediction/{self.problem.name}/{self.problem.digest}"

    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Groups of all schedules from one start, for a few seeds."""
        by_seed: dict[tuple[str, int], list[Run]] = {}
        for run in runs:
            by_seed.setdefault((run.settings["start"], run.seed), []).append(run)
        alike: dict[str, list[list[Run]]] = {}
        for group in by_seed.values():
            alike.setdefault(json.dumps([dict(run.settings) for run in group], sort_keys=True), []).append(group)
        width = self.seeds_together
        parts = [groups[i : i + width] for groups in alike.values() for i in range(0, len(groups), width)]
        return [[run for group in part for run in group] for part in parts]

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Run a group at once; the runs of a seed are next to each other."""
        groups = [list(group) for _, group in groupby(batch, key=lambda run: run.seed)]
        settings = [[run.settings for run in group] for group in groups]
        if any(each != settings[0] for each in settings):  # another process has claimed a part of the group
            return [outcome for group in groups for outcome in self.run(group)]
        schedules = [schedule_from_dict(dict(each["schedule"])) for each in settings[0]]
        start, seeds = self.problem.starts[settings[0][0]["start"]], [group[0].seed for group in groups]
        with threads(1), np.errstate(over="ignore", invalid="ignore"):
            curves = excess_losses(self.problem, start, schedules, seeds)
        marks = curve_marks(schedules[0].total_steps).tolist()
        return [_outcome(marks, curves[:, i, k]) for i in range(len(seeds)) for k in range(len(schedules))]


@dataclass(frozen=True, eq=False)
class ExactExpectations:
    """Exact expectations of ridge regression; settings are ``schedule`` and ``batch_size``, the seed is not used."""

    problem: RidgeProblem  # ridge regression
    digest: str  # hash of the problem
    start: Array  # initial weights
    metric: str = "excess"
    minimise: bool = True

    @property
    def name(self) -> str:
        """``prediction/exact`` and the hash of the problem."""
        return f"prediction/exact/{self.digest}"

    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Every expectation by itself."""
        return [[run] for run in runs]

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Compute each expectation."""
        return [self._expectation(run) for run in batch]

    def _expectation(self, run: Run) -> Outcome:
        schedule = schedule_from_dict(dict(run.settings["schedule"]))
        marks = curve_marks(schedule.total_steps)
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = expected_gaps(self.problem, schedule, marks, self.start, run.settings["batch_size"])
        return _outcome(marks.tolist(), gaps)


def run_of(start: str, schedule: Schedule, seed: int) -> Run:
    """The run from a start under a schedule."""
    return Run({"start": start, "schedule": schedule.to_dict()}, seed)


def _outcome(marks: list[int], excess: Array) -> Outcome:
    last, limit = float(excess[-1]), EXPLOSION * max(abs(float(excess[0])), 1.0)
    curve = tuple((float(t), float(value)) for t, value in zip(marks, excess, strict=True) if np.isfinite(value))
    diverged = not np.isfinite(excess).all() or last > limit
    return Outcome({"excess": last if np.isfinite(last) else float(np.finfo(float).max)}, curve, bool(diverged))
