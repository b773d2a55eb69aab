"""Ridge regression by SGD with batch size 1: the paper's first experiment, at full scale."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numba
import numpy as np

from eigencurve import Schedule, Spectrum, piecewise
from eigencurve.runs import Outcome, Run
from eigencurve.schedules.kinds import own_settings, schedule_of_kind
from paper import checks
from paper.arrays import Array, IntArray
from paper.data.rows import SparseRows

# When the factored-out scale falls below this, it is multiplied back in, long before it could underflow.
SMALLEST_SCALE = 1e-30
ALPHA = 1e-3
EPOCHS = (1, 5, 25, 250)
INITIAL_RATES = (0.1, 0.06, 0.03, 0.02, 0.01, 0.006, 0.003, 0.002, 0.001, 0.0006, 0.0003, 0.0002, 0.0001)
LAST_RATES = (0.1, 0.01, 0.001, 0.0001, 0.00001, 0.0, None)  # None is the paper's "UNRESTRICTED"
SHRINKAGES = (0.5, 2**-0.5, 2 ** (-1 / 3), 2**-0.2, 2**-0.05)
INITIAL_WEIGHTS = 0.05
# A run diverged if its gap exceeds the initial gap by this factor, or is not finite.
EXPLOSION = 1e3
# Number of schedules that run side by side; they share the order of rows, so each entry is read once for all.
WIDTH = 32
NUM_CURVE_POINTS = 50


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})
def run_steps(
    starts: IntArray, columns: IntArray, values: Array, labels: Array, order: IntArray, rates: Array, decay: float,
    scaled: Array, scale: Array,
) -> None:  # fmt: skip
    r"""One SGD step per row in ``order``, for C schedules side by side.

    .. math:: w \leftarrow w - \eta\,[2(x^\top w - y)x + 2\alpha w] = (1 - 2\eta\alpha)\,w - 2\eta(x^\top w - y)\,x

    The weights are stored as :math:`w = s\,v`: weight decay only multiplies s, so the cost of a step is proportional
    to the number of entries in its row. All C schedules see the same rows, so each entry is read once.

    Args:
        starts: Start of each row in ``columns`` and ``values``, followed by their length.
        columns: Column of each entry.
        values: Value of each entry.
        labels: Label y of each row.
        order: Row number of each step.
        rates: Learning rate of each step and schedule, shape (steps, C).
        decay: Coefficient α of the L2 term.
        scaled: The vectors v, shape (columns, C); updated in place.
        scale: The scales s, shape (C,); updated in place.
    """
    num_schedules = rates.shape[1]
    error = np.empty(num_schedules)
    for step in range(len(order)):
        row = order[step]
        error[:] = 0.0
        for k in range(starts[row], starts[row + 1]):
            value, coordinate = values[k], scaled[columns[k]]
            for c in range(num_schedules):
                error[c] += value * coordinate[c]
        smallest = 1.0
        for c in range(num_schedules):
            error[c] = error[c] * scale[c] - labels[row]
            scale[c] *= 1 - 2 * rates[step, c] * decay
            error[c] *= 2 * rates[step, c] / scale[c]
            smallest = min(smallest, scale[c])
        for k in range(starts[row], starts[row + 1]):
            value, coordinate = values[k], scaled[columns[k]]
            for c in range(num_schedules):
                coordinate[c] -= error[c] * value
        if smallest < SMALLEST_SCALE:
            scaled *= scale
            scale[:] = 1.0


@dataclass(frozen=True, eq=False)
class RidgeProblem:
    r"""Least squares with an L2 term.

    .. math:: f(w) = \tfrac1n\|Xw - Y\|^2 + \alpha\|w\|^2, \qquad H = 2(X^\top X/n + \alpha I), \qquad
              w_* = (X^\top X + n\alpha I)^{-1}X^\top Y

    Reference: arXiv:2110.14109, Appendix "Ridge Regression".
    """

    rows: SparseRows
    alpha: float = ALPHA

    def __post_init__(self) -> None:
        checks.positive("RidgeProblem", "alpha", self.alpha)

    @cached_property
    def hessian(self) -> Array:
        """The Hessian H."""
        matrix = self.rows.dense()
        return np.asarray(2 * (matrix.T @ matrix / len(self.rows) + self.alpha * np.eye(self.rows.num_columns)))

    @cached_property
    def optimum(self) -> Array:
        """The minimiser w_*, in closed form."""
        return np.asarray(
            np.linalg.solve(self.hessian, 2 * self.rows.dense().T @ self.rows.labels / len(self.rows)), float
        )

    @cached_property
    def spectrum(self) -> Spectrum:
        """The exact eigenvalues of H, which are positive because α is."""
        return Spectrum.from_matrix(self.hessian)

    def loss(self, weights: Array) -> float:
        """The loss f(w)."""
        residual = self.rows.dense() @ weights - self.rows.labels
        return float(residual @ residual / len(residual) + self.alpha * weights @ weights)

    def gaps(self, weights: Array) -> Array:
        """f(w) - f(w_*) = ½ (w - w_*)ᵀ H (w - w_*) for each column of ``weights``; inf on overflow."""
        error = weights - self.optimum[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(0.5 * np.sum(error * (self.hessian @ error), axis=0))


@dataclass(frozen=True, eq=False)
class RidgeExperiment:
    """Ridge regression under a learning-rate schedule.

    The settings of a run are ``schedule``, ``epochs``, ``lr`` and the schedule's own. If ``sampling`` is
    ``"replacement"``, every step draws its row independently; otherwise rows are reshuffled every epoch.
    """

    problem: RidgeProblem
    data_name: str
    metric: str = "gap"
    minimise: bool = True

    @cached_property
    def name(self) -> str:
        """``ridge``, the name of the data and a hash of its numbers, so runs on other data are other runs."""
        rows = self.problem.rows
        digest = hashlib.sha256(np.float64(self.problem.alpha).tobytes())
        for array in (rows.labels, rows.starts, rows.columns, rows.values):
            digest.update(np.ascontiguousarray(array).tobytes())
        return f"ridge/{self.data_name}/{digest.hexdigest()[:12]}"

    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Groups of runs that share length, sampling and seed, and so the order of rows; the longest first."""
        shared: dict[tuple[int, bool, int], list[Run]] = {}
        for run in runs:
            shared.setdefault((-run.settings["epochs"], _replaces(run), run.seed), []).append(run)
        return [group[i : i + WIDTH] for _, group in sorted(shared.items()) for i in range(0, len(group), WIDTH)]

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Run a group at once: the same seed gives the same initial weights and order of rows."""
        epochs, seed = int(batch[0].settings["epochs"]), batch[0].seed
        schedules = [make_schedule(run.settings, self.problem) for run in batch]
        curve = run_sgd(self.problem, schedules, epochs, seed, _replaces(batch[0]))
        size = len(self.problem.rows)
        return [_outcome([(t / size, float(gaps[c])) for t, gaps in curve.items()]) for c in range(len(batch))]


def run_sgd(
    problem: RidgeProblem, schedules: Sequence[Schedule], epochs: int, seed: int, replacement: bool = False,
    start: Array | None = None, marks: IntArray | None = None,
) -> dict[int, Array]:  # fmt: skip
    """Run SGD under several schedules; the gap of each schedule after some numbers of steps.

    Only the rates of one epoch are held in memory.

    Args:
        problem: Ridge regression problem.
        schedules: Schedules to run side by side.
        epochs: Number of epochs.
        seed: Seed of the initial weights and of the order of rows.
        replacement: Whether to draw every row independently, as the theory assumes, instead of reshuffling.
        start: Initial weights; None draws them from the seed.
        marks: Numbers of steps after which to compute the gaps, increasing; None is fifty, evenly spaced, with the
            last. The initial gap is always computed.
    """
    rows, rng = problem.rows, np.random.default_rng(seed)
    if start is None:
        start = rng.uniform(-INITIAL_WEIGHTS, INITIAL_WEIGHTS, rows.num_columns)
    if marks is None:
        marks = np.unique(np.linspace(0, epochs * len(rows), NUM_CURVE_POINTS + 1).round().astype(np.int64))
    scaled = np.repeat(start[:, None], len(schedules), axis=1)
    scale = np.ones(len(schedules))
    curve = {0: problem.gaps(scaled)}
    for first in range(0, epochs * len(rows), len(rows)):
        steps = np.arange(first, first + len(rows))
        rates = np.stack([schedule(steps) for schedule in schedules], axis=1)
        order = rng.integers(0, len(rows), len(rows)) if replacement else rng.permutation(len(rows))
        inside = marks[(marks > first) & (marks < first + len(rows))] - first
        for begin, end in pairwise([0, *inside, len(rows)]):
            part = slice(begin, end)
            run_steps(
                rows.starts, rows.columns, rows.values, rows.labels, order[part], rates[part], problem.alpha, scaled,
                scale,
            )  # fmt: skip
            if first + end in marks:
                curve[first + int(end)] = problem.gaps(scaled * scale)
    return curve


def make_schedule(settings: Mapping[str, Any], problem: RidgeProblem) -> Schedule:
    """The schedule that ``settings`` name, for the problem's own spectrum and number of steps."""
    kind, total = settings["schedule"], settings["epochs"] * len(problem.rows)
    if kind == "best":
        return piecewise(total, *zip(*settings["curve"], strict=True))
    return schedule_of_kind(kind, total, settings["lr"], problem.spectrum, **own_settings(kind, settings))


def grids(epochs: int) -> dict[str, list[dict[str, Any]]]:
    """The paper's grid of initial and last rates for each of its schedules, and for further schedules.

    Last rates above the initial rate are left out, and so is 0 for a decay that cannot reach it. The last rate
    "UNRESTRICTED" applies to Eigencurve only.
    """
    positive = [(lr, last) for lr, last in product(INITIAL_RATES, LAST_RATES) if last and last <= lr]
    reachable = positive + [(lr, 0.0) for lr in INITIAL_RATES]
    every = reachable + [(lr, None) for lr in INITIAL_RATES]

    def grid(schedule: str, pairs: Sequence[tuple[float, float | None]], **more: Any) -> list[dict[str, Any]]:
        return [{"schedule": schedule, "epochs": epochs, "lr": lr, "min_lr": last, **more} for lr, last in pairs]

    def curve(beta: float, allocation: str = "sqrt") -> list[dict[str, Any]]:
        return grid("eigencurve", every, beta=beta, allocation=allocation)

    return {
        "Constant": [{"schedule": "constant", "epochs": epochs, "lr": lr} for lr in INITIAL_RATES],
        "Inverse Time Decay": grid("inverse_time", positive),
        "Exponential Decay": grid("exponential", positive),
        "Cosine Decay": grid("cosine", reachable),
        "Eigencurve, β = 2": curve(2.0),
        "Eigencurve, β = 1.000005": curve(1.000005),
        "Eigencurve, β → 1": curve(1.0),
        "Eigencurve, β = 2, optimal Δ": curve(2.0, "optimal"),
        "Elastic Step Decay": [
            {"schedule": "elastic_step", "epochs": epochs, "lr": lr, "r": r} for lr in INITIAL_RATES for r in SHRINKAGES
        ],
        "Cosine-power, α = 0.5": grid("cosine_power", reachable, alpha=0.5),
        "Cosine-power, α = 2": grid("cosine_power", reachable, alpha=2.0),
    }


def _replaces(run: Run) -> bool:
    return bool(run.settings.get("sampling") == "replacement")


def _outcome(curve: list[tuple[float, float]]) -> Outcome:
    first, last = curve[0][1], curve[-1][1]
    diverged = not last < EXPLOSION * first
    finite = [(t, gap) for t, gap in curve if np.isfinite(gap)]
    return Outcome({"gap": last if np.isfinite(last) else float(np.finfo(float).max)}, tuple(finite), diverged)
