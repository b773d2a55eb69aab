"""What the theory says about ridge regression: the numerically best schedule, and a check of its noise model."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eigencurve import NoisyQuadratic, Spectrum
from eigencurve.runs import Outcome, Run, Store
from eigencurve.theory.optimal import knots_for
from paper.engine.protocol import execute
from paper.engine.request import Workers
from paper.ridge.experiment import INITIAL_WEIGHTS, RidgeExperiment, RidgeProblem, make_schedule
from paper.training.runs import TrainingRuns

# SGD with batch size 1 is unstable above 1/max ‖x‖² (0.07 for a4a), which the noise model of the theory ignores.
LARGEST_RATES = (0.06, 0.03, 0.02, 0.01)
NUM_KNOTS = 512
# With more steps, a search takes longer than all grids together.
MAX_STEPS = 150_000


def noisy_quadratic(problem: RidgeProblem) -> NoisyQuadratic:
    r"""The problem in the theory's terms: noise and initial error along each eigenvector :math:`u_j` of H.

    .. math:: \sigma_j^2 = \frac{1}{\lambda_j}\,\frac1n\sum_i (u_j^\top g_i)^2, \qquad
              e_j = \lambda_j\,E\bigl[(u_j^\top(w_0 - w_*))^2\bigr]

    where :math:`g_i` is the gradient of sample i at the optimum. Away from the optimum the gradients vary more; that
    part of the noise is neglected.
    """
    eigenvalues, vectors = np.linalg.eigh(problem.hessian)
    matrix, optimum = problem.rows.dense(), problem.optimum
    gradients = 2 * (matrix @ optimum - problem.rows.labels)[:, None] * matrix + 2 * problem.alpha * optimum
    noise = np.mean((gradients @ vectors) ** 2, axis=0) / eigenvalues
    error = eigenvalues * ((vectors.T @ optimum) ** 2 + INITIAL_WEIGHTS**2 / 3)
    return NoisyQuadratic(Spectrum(eigenvalues, np.ones_like(eigenvalues)), noise, error)


def best_schedules(ridge: RidgeExperiment) -> TrainingRuns:
    """Searches for the best schedule, in place of training.

    The settings are ``epochs`` and the largest rate ``lr``; the curve of the outcome is the schedule found. The seed is
    not used.
    """
    return TrainingRuns(f"{ridge.name}/best", partial(_search, ridge.problem), "loss", minimise=True)


def _search(problem: RidgeProblem, run: Run, _key: str, _checkpoint: Path | None) -> Outcome:
    total, largest = run.settings["epochs"] * len(problem.rows), run.settings["lr"]
    quadratic = noisy_quadratic(problem)
    found, bound = quadratic.search_best(total, largest), quadratic.lower_bound(total, largest)
    knots = knots_for(total, NUM_KNOTS)
    curve = tuple(zip(knots.astype(float).tolist(), found.schedule(knots).tolist(), strict=True))
    return Outcome({"loss": found.loss, "lower_bound": bound}, curve)


def best_grid(
    ridge: RidgeExperiment, epochs: int, store: Store, workers: Workers | None, progress: bool
) -> list[dict[str, Any]]:
    """Settings of the best schedule for each largest rate; empty if the run is too long to search."""
    if epochs * len(ridge.problem.rows) > MAX_STEPS:
        return []
    runs = [Run({"epochs": epochs, "lr": largest}, seed=0) for largest in LARGEST_RATES]
    outcomes = execute(best_schedules(ridge), runs, store, workers, progress)
    return [
        {**run.settings, "schedule": "best", "curve": [list(pair) for pair in outcome.curve]}
        for run, outcome in zip(runs, outcomes, strict=True)
    ]


@dataclass(frozen=True)
class SamplingCheck:
    """The check at one budget."""

    epochs: int  # number of epochs
    # By initial rate: the mean gap with rows reshuffled every epoch, the mean gap with independent rows, and the
    # expected gap with independent rows from the exact recursion.
    gaps: Mapping[float, tuple[float, float, float]]
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
    gaps = {}
    for lr in LARGEST_RATES:
        settings = {**base, "lr": lr}
        reshuffled, independent = (
            statistics.fmean(o.metrics["gap"] for o in execute(ridge, [Run(way, s) for s in seeds], store, workers))
            for way in (settings, {**settings, "sampling": "replacement"})
        )
        expected = num_columns * theory.expected_loss(make_schedule(settings, problem))
        gaps[lr] = reshuffled, independent, expected
    bound = num_columns * theory.lower_bound(epochs * len(problem.rows), max_lr=max(LARGEST_RATES))
    return SamplingCheck(epochs, gaps, bound)
