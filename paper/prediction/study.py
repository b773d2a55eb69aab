"""The study itself: every problem with its measured quadratics and its real runs, and the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from eigencurve.runs import Run
from paper.arrays import Array
from paper.data.rows import SparseRows, load_rows
from paper.engine.progress import show_status
from paper.engine.protocol import execute
from paper.engine.request import Request
from paper.prediction.experiment import ExactExpectations, PredictedRuns, curve_marks, run_of
from paper.prediction.findings import Finding, excess_ratios, mean_and_error, progress_ratios
from paper.prediction.measuring import (
    DensePoint,
    MeasuredPoint,
    dense_point,
    from_end,
    from_matrices,
    from_start,
    measure_point,
)
from paper.prediction.problems import Problem, last_layer, logistic, network, ridge
from paper.prediction.scales import Pair, Plan, PredictionScale, pairs_of

# Names of the local quadratics.
END, START, DENSE = "measured at the end", "measured at the start", "dense matrices"
# Dense matrices are computed up to this dimension.
LARGEST_DENSE = 1000
# Batch sizes, in addition to 1, at which the exact expectation of ridge regression is computed.
LARGER_BATCHES = (8, 64)


@dataclass(frozen=True, eq=False)
class ProblemFindings:
    """All findings of one problem."""

    problem: Problem  # the problem
    plan: Plan  # how it was run
    end: MeasuredPoint  # measured spectrum and noise at its end
    dense: DensePoint | None  # the same from dense matrices, if the problem is small enough
    findings: tuple[Finding, ...]  # a finding for each start, the usual start first


@dataclass(frozen=True, eq=False)
class NoiseEffect:
    """What noise that depends on the weights does to one schedule of ridge regression."""

    pair: Pair  # the schedule
    batch_size: int  # number of rows per step
    quadratic: float  # expected final excess loss of the noisy quadratic with dense matrices
    curve: Array  # the exact expectation at every mark

    @property
    def exact(self) -> float:
        """The exact expected final excess loss."""
        return float(self.curve[-1])


def knows_minimum(found: ProblemFindings, model: str) -> bool:
    """Whether a prediction is relative to the true minimum, and not to an earlier run or to its own guess."""
    return found.problem.is_minimum and model != START


def ratios(found: ProblemFindings, finding: Finding, model: str) -> Array:
    """Predicted over measured final excess loss of each pair, or decrease of the loss if the minimum is unknown."""
    return (excess_ratios if knows_minimum(found, model) else progress_ratios)(finding, model)


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
    findings = tuple(_finding(experiment, start, pairs, plan, end, dense, request) for start in problem.starts)
    return ProblemFindings(problem, plan, end, dense, findings)


def noise_effects(found: ProblemFindings, request: Request) -> list[NoiseEffect]:
    """The exact expectation of ridge regression.

    It is computed for every schedule at the shown rate, for cosine at every rate, and for cosine at the largest rate
    with larger batches.
    """
    problem, dense, start = found.problem, found.dense, found.problem.starts[found.problem.first]
    if problem.ridge is None or dense is None:
        raise ValueError(f"noise_effects: 'found' must be of ridge regression, got {problem.name}.")
    cases = _cases(found.findings[0].pairs, found.plan)
    exact = ExactExpectations(problem.ridge, problem.digest, start.numpy())
    runs = [Run({"schedule": pair.schedule.to_dict(), "batch_size": size}, seed=0) for pair, size in cases]
    outcomes = execute(exact, runs, request.store, request.workers, request.progress)
    marks, effects = found.findings[0].marks, []
    for (pair, size), outcome in zip(cases, outcomes, strict=True):
        model = from_matrices(problem, dense, start, size)
        curve, _ = mean_and_error([outcome], len(marks))
        effects.append(NoiseEffect(pair, size, float(model.curve(pair.schedule, marks)[-1]), curve))
    return effects


def _cases(pairs: Sequence[Pair], plan: Plan) -> list[tuple[Pair, int]]:
    shown = [pair for pair in pairs if pair.rate == plan.shown_rate or pair.kind == "cosine"]
    largest = [pair for pair in shown if pair.kind == "cosine" and pair.rate == max(plan.rates)]
    return [(pair, 1) for pair in shown] + [(pair, size) for pair in largest for size in LARGER_BATCHES]


def _finding(
    experiment: PredictedRuns, start: str, pairs: list[Pair], plan: Plan, end: MeasuredPoint, dense: DensePoint | None,
    request: Request,
) -> Finding:  # fmt: skip
    problem, marks = experiment.problem, curve_marks(plan.total_steps)
    weights = problem.starts[start]
    here = end if torch.equal(weights, problem.end) else _measured(problem, weights, plan, request)
    models = {END: from_end(problem, end, weights), START: from_start(problem, here, weights)}
    if dense is not None:
        models[DENSE] = from_matrices(problem, dense, weights)
    measured, error = _curves(experiment, start, pairs, plan, request)
    predicted = {name: np.array([model.curve(p.schedule, marks) for p in pairs]) for name, model in models.items()}
    return Finding(
        start, problem.excess(weights), here.prepared.L, here.noise.sigma2, pairs, marks, measured, error, predicted
    )


def _curves(
    experiment: PredictedRuns, start: str, pairs: list[Pair], plan: Plan, request: Request
) -> tuple[Array, Array]:
    """Mean curve of each pair and its standard error, from runs that are in the store."""
    num_marks, means, errors = len(curve_marks(plan.total_steps)), [], []
    for pair in pairs:
        runs = [run_of(start, pair.schedule, seed) for seed in range(plan.num_seeds)]
        outcomes = [outcome for outcome in request.store.outcomes(experiment.name, runs) if outcome is not None]
        mean, error = mean_and_error(outcomes, num_marks)
        means.append(mean)
        errors.append(error)
    return np.array(means), np.array(errors)


def _measured(problem: Problem, weights: Tensor, plan: Plan, request: Request) -> MeasuredPoint:
    return measure_point(problem, weights, plan, request.checkpoints, request.progress)


def _rows(request: Request, scale: PredictionScale) -> tuple[str, SparseRows]:
    """The rows of a4a, or of scikit-learn's data if a4a is missing."""
    path = None if request.data is None else request.data / "a4a"
    name, rows = load_rows(path if path is not None and path.is_file() else None, request.download)
    if scale.num_rows is None:
        return name, rows
    return name, SparseRows.from_dense(rows.dense()[: scale.num_rows], rows.labels[: scale.num_rows])
