"""Does the theory predict ridge regression? Eigencurve with reshuffled and with independent rows, and expected."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from eigencurve.runs import Run, Store
from paper.engine.protocol import execute
from paper.engine.request import Workers
from paper.ridge.best import LARGEST_RATES, MAX_STEPS, noisy_quadratic
from paper.ridge.experiment import RidgeExperiment, make_schedule


@dataclass(frozen=True)
class SamplingRow:
    """Mean gaps at one initial rate."""

    lr: float  # initial learning rate
    reshuffled: float  # mean gap with rows reshuffled every epoch
    independent: float  # mean gap with a row drawn independently at each step
    expected: float  # expected gap with independent rows, from the exact recursion

    @property
    def gaps(self) -> tuple[float, float, float]:
        """The three gaps."""
        return self.reshuffled, self.independent, self.expected


@dataclass(frozen=True)
class SamplingCheck:
    """The check at one budget."""

    epochs: int  # number of epochs
    rows: Sequence[SamplingRow]  # gaps at each initial rate
    certificate: float  # lower bound on the expected gap of any schedule with independent rows


def check_sampling(
    ridge: RidgeExperiment, epochs: int, seeds: Sequence[int], store: Store, workers: Workers | None
) -> SamplingCheck | None:
    """Run Eigencurve (β = 2, last rate free) both ways at a few initial rates; None if the run is too long."""
    problem = ridge.problem
    if epochs * len(problem.rows) > MAX_STEPS:
        return None
    theory, num_columns = noisy_quadratic(problem), problem.rows.num_columns
    base = {"schedule": "eigencurve", "epochs": epochs, "min_lr": None, "beta": 2.0, "allocation": "sqrt"}
    rows = []
    for lr in LARGEST_RATES:
        settings = {**base, "lr": lr}
        ways = (settings, {**settings, "sampling": "replacement"})
        means = [
            statistics.fmean(o.metrics["gap"] for o in execute(ridge, [Run(way, s) for s in seeds], store, workers))
            for way in ways
        ]
        expected = num_columns * theory.expected_loss(make_schedule(settings, problem))
        rows.append(SamplingRow(lr, means[0], means[1], expected))
    bound = num_columns * theory.lower_bound(epochs * len(problem.rows), max_lr=max(LARGEST_RATES))
    return SamplingCheck(epochs, tuple(rows), bound)
