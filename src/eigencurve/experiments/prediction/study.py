"""The study itself: every problem with its measured quadratics and its real runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from eigencurve._arrays import Array
from eigencurve.experiments.data.libsvm import SparseRows
from eigencurve.experiments.data.regression import load_rows
from eigencurve.experiments.engine.progress import show_status
from eigencurve.experiments.engine.protocol import execute
from eigencurve.experiments.engine.request import Request
from eigencurve.experiments.prediction.convex import last_layer, logistic, ridge
from eigencurve.experiments.prediction.experiment import PredictedRuns, run_of
from eigencurve.experiments.prediction.findings import Finding, mean_and_error
from eigencurve.experiments.prediction.least_squares import expected_gaps
from eigencurve.experiments.prediction.measuring import (
    DensePoint,
    MeasuredPoint,
    dense_point,
    from_end,
    from_matrices,
    from_start,
    measure_point,
)
from eigencurve.experiments.prediction.network import network
from eigencurve.experiments.prediction.problems import Problem
from eigencurve.experiments.prediction.replicas import curve_marks
from eigencurve.experiments.prediction.scales import Pair, Plan, PredictionScale, pairs_of

# Names of the local quadratics.
END, START, DENSE = "measured at the end", "measured at the start", "dense matrices"
# Dense matrices are computed up to this dimension.
LARGEST_DENSE = 1000
# Batch sizes at which the exact expectation of ridge regression is compared with that of the noisy quadratic.
RIDGE_BATCHES = (1, 8, 64)


@dataclass(frozen=True, eq=False)
class ProblemFindings:
    """All findings of one problem.

    Attributes:
        problem: The problem.
        plan: How it was run.
        end: Measured spectrum and noise at its end.
        dense: The same from dense matrices, if the problem is small enough.
        findings: A finding for each start, the usual start first.
    """

    problem: Problem
    plan: Plan
    end: MeasuredPoint
    dense: DensePoint | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, eq=False)
class NoiseEffect:
    """What noise that depends on the weights does to one schedule of ridge regression.

    Attributes:
        pair: The schedule.
        batch_size: Number of rows per step.
        quadratic: Expected final excess loss of the noisy quadratic with dense matrices.
        curve: The exact expectation at every mark.
    """

    pair: Pair
    batch_size: int
    quadratic: float
    curve: Array

    @property
    def exact(self) -> float:
        """The exact expected final excess loss."""
        return float(self.curve[-1])


def problem_makers(request: Request, scale: PredictionScale) -> dict[str, Callable[[], Problem]]:
    """A function that makes each problem, by its name."""
    name, rows = _rows(request, scale)
    return {
        "ridge": lambda: ridge(rows, name),
        "logistic": lambda: logistic(rows, name),
        "last-layer": lambda: last_layer(request.data, scale.num_images),
        "network": lambda: network(request.data, scale.network, request.checkpoints),
    }


def study_problem(problem: Problem, plan: Plan, request: Request) -> ProblemFindings:
    """Measure the problem's quadratics and run it from every start."""
    show_status(f"{problem.title}: measuring spectra and noise ...", request.progress)
    end = _measured(problem, problem.end, plan, request)
    pairs, experiment = pairs_of(plan, end.prepared), PredictedRuns(problem, plan.seeds_together)
    runs = [run_of(s, pair.schedule, seed) for s in problem.starts for seed in range(plan.num_seeds) for pair in pairs]
    execute(experiment, runs, request.store, request.workers, request.progress)
    dense = dense_point(problem) if problem.dim <= LARGEST_DENSE else None
    found = tuple(_finding(experiment, start, pairs, plan, (end, dense), request) for start in problem.starts)
    return ProblemFindings(problem, plan, end, dense, found)


def noise_effects(found: ProblemFindings, rates: Sequence[float]) -> list[NoiseEffect]:
    """The exact expectation of ridge regression: every schedule at some rates, and cosine with larger batches too."""
    chosen = [pair for pair in found.findings[0].pairs if pair.rate in rates]
    single = [_effect(found, pair, RIDGE_BATCHES[0]) for pair in chosen]
    return single + [
        _effect(found, pair, size) for pair in chosen if pair.kind == "cosine" for size in RIDGE_BATCHES[1:]
    ]


def _effect(found: ProblemFindings, pair: Pair, batch_size: int) -> NoiseEffect:
    problem, marks = found.problem, found.findings[0].marks
    if problem.ridge is None or found.dense is None:
        raise ValueError(f"noise_effects: 'found' must be of ridge regression, got {problem.name}.")
    start = problem.starts[problem.first]
    curve = expected_gaps(problem.ridge, pair.schedule, marks, start.numpy(), batch_size)
    model = from_matrices(problem, found.dense, start, batch_size)
    return NoiseEffect(pair, batch_size, float(model.curve(pair.schedule, marks)[-1]), curve)


def _finding(
    experiment: PredictedRuns,
    start: str,
    pairs: list[Pair],
    plan: Plan,
    ends: tuple[MeasuredPoint, DensePoint | None],
    request: Request,
) -> Finding:
    problem, marks, (end, dense) = experiment.problem, curve_marks(plan.total_steps), ends
    weights = problem.starts[start]
    here = end if torch.equal(weights, problem.end) else _measured(problem, weights, plan, request)
    models = {END: from_end(problem, end, weights), START: from_start(problem, here, weights)}
    if dense is not None:
        models[DENSE] = from_matrices(problem, dense, weights)
    measured, error = _curves(experiment, start, pairs, plan, request)
    predicted = {name: np.array([model.curve(p.schedule, marks) for p in pairs]) for name, model in models.items()}
    return Finding(start, problem.excess(weights), here.prepared.L, pairs, marks, measured, error, predicted)


def _curves(
    experiment: PredictedRuns, start: str, pairs: list[Pair], plan: Plan, request: Request
) -> tuple[Array, Array]:
    """Mean curve of each pair and its standard error, from runs that are in the store."""
    found = []
    for pair in pairs:
        runs = [run_of(start, pair.schedule, seed) for seed in range(plan.num_seeds)]
        outcomes = request.store.outcomes(experiment.name, runs)
        known = [outcome for outcome in outcomes if outcome is not None]
        found.append(mean_and_error(known, len(curve_marks(plan.total_steps))))
    return np.array([mean for mean, _ in found]), np.array([error for _, error in found])


def _measured(problem: Problem, weights: Tensor, plan: Plan, request: Request) -> MeasuredPoint:
    return measure_point(problem, weights, plan, request.checkpoints, request.progress)


def _rows(request: Request, scale: PredictionScale) -> tuple[str, SparseRows]:
    """The rows of a4a, or of scikit-learn's data if a4a is missing."""
    path = None if request.data is None else request.data / "a4a"
    name, rows = load_rows(path if path is not None and path.is_file() else None, request.download)
    if scale.num_rows is None:
        return name, rows
    return name, SparseRows.from_dense(rows.dense()[: scale.num_rows], rows.labels[: scale.num_rows])
