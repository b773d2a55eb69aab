"""The numerically best schedule for ridge regression; searches are runs of their own in the same store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve import NoisyQuadratic, Spectrum
from eigencurve.runs import Outcome, Run, Store
from eigencurve.theory.optimal import knots_for
from paper.engine.protocol import execute, one_by_one
from paper.engine.request import Workers
from paper.ridge.experiment import INITIAL_WEIGHTS, RidgeExperiment, RidgeProblem

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


@dataclass(frozen=True, eq=False)
class BestSchedules:
    """Searches for the best schedule.

    The settings are ``epochs`` and the largest rate ``lr``; the curve of the outcome is the schedule found.
    """

    ridge: RidgeExperiment
    metric: str = "loss"
    minimise: bool = True

    @property
    def name(self) -> str:
        """Name of the ridge experiment, followed by ``/best``."""
        return f"{self.ridge.name}/best"

    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Every search by itself, the longest first."""
        return one_by_one(runs)

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Search for each run's schedule; the seed is not used."""
        return [self._search(run.settings["epochs"], run.settings["lr"]) for run in batch]

    def _search(self, epochs: int, largest: float) -> Outcome:
        total = epochs * len(self.ridge.problem.rows)
        quadratic = noisy_quadratic(self.ridge.problem)
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
    outcomes = execute(BestSchedules(ridge), runs, store, workers, progress)
    return [
        {
            "schedule": "best",
            "epochs": epochs,
            "lr": run.settings["lr"],
            "curve": [list(pair) for pair in outcome.curve],
        }
        for run, outcome in zip(runs, outcomes, strict=True)
    ]
