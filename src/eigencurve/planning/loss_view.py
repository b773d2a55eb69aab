"""Expected losses along the run, computed fast enough for an interactive page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eigencurve._arrays import Array, IntArray
from eigencurve.planning.labels import BEST
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.sampling import peak_rate
from eigencurve.theory.blocks import block_curve, blocks_of
from eigencurve.theory.certificate import certificates
from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.nodes import compress
from eigencurve.theory.quadratic import NoisyQuadratic
from eigencurve.theory.tuning import best_scale

# What happens to the rates of a schedule before it runs on the quadratic.
SCALES = ("best", "theory", "given")
# Steps at which losses are computed: this many evenly spaced, and this many geometrically from the first step on.
NUM_EVEN, NUM_EARLY = 31, 30
# Number of cells of ln λ and largest change of the rate within a block, from coarse to fine. Two resolutions in a row
# must agree to within PROMISED.
RESOLUTIONS = ((32, 0.1), (64, 0.02), (128, 0.005), (256, 0.001))
PROMISED = 0.01


@dataclass(frozen=True, eq=False)
class LossRow:
    """Expected loss of one schedule on the quadratic. The numbers are infinite if it diverges.

    Attributes:
        name: Name of the schedule.
        peak: Highest rate of the schedule on the quadratic.
        loss, bias, variance: Expected loss after the last step, and its two parts.
        ratio: Loss divided by the lower bound; None if there is no bound.
        curve: Expected loss at each of the marks.
    """

    name: str
    peak: float
    loss: float
    bias: float
    variance: float
    ratio: float | None
    curve: Array

    @property
    def diverges(self) -> bool:
        """Whether the rates are too high for the quadratic."""
        return not math.isfinite(self.loss)


@dataclass(frozen=True, eq=False)
class LossView:
    """Expected losses along the run.

    Attributes:
        marks: Numbers of steps at which losses are given.
        rows: One row per schedule, the lowest final loss first.
        bound: Lower bound on the loss of any schedule, at each mark; None with momentum.
        max_lr: Largest learning rate allowed.
        error: Largest relative difference between the two finest resolutions that were computed.
    """

    marks: IntArray
    rows: tuple[LossRow, ...]
    bound: Array | None
    max_lr: float
    error: float


def loss_view(
    problem: NoisyQuadratic, max_lr: float, total_steps: int, schedules: Mapping[str, Schedule], scale: str
) -> LossView:
    """Compute the expected loss of every schedule along the run, and the lower bound.

    The losses are computed at two resolutions of spectrum and time. The finer one is returned, with the largest
    difference between the two. While that exceeds ``PROMISED``, the resolution is refined, at most twice.

    Args:
        problem: Quadratic on which the schedules run.
        max_lr: Largest learning rate allowed, for the bound and for ``scale="best"``.
        total_steps: Number of steps T of every schedule.
        schedules: Schedules by name. The one named ``BEST`` always keeps its rates.
        scale: ``"best"`` runs each schedule at its best peak rate, ``"theory"`` at ``max_lr / 2``, ``"given"`` at its
            own.
    """
    nodes, marks = problem.nodes, marks_for(total_steps)
    evaluator = BlockEvaluator(nodes)
    scales = {
        name: _scale("given" if name == BEST else scale, evaluator, schedule, max_lr)
        for name, schedule in schedules.items()
    }
    stiffness = 2 * max_lr / problem.stable_rate
    coarse: dict[str, Array] = {}
    for num_cells, tolerance in RESOLUTIONS:
        few = compress(nodes, num_cells)
        fine = {
            name: block_curve(few, blocks_of(schedule, marks, tolerance, stiffness, nodes.inertia).scaled(scales[name]))
            for name, schedule in schedules.items()
        }
        error = _difference(coarse, fine)
        if error <= PROMISED:
            break
        coarse = fine
    bound = None if problem.momentum else certificates(nodes, marks, max_lr)
    final = None if bound is None else float(bound[-1])
    rows = [_row(name, fine[name], scales[name] * peak_rate(schedule), final) for name, schedule in schedules.items()]
    return LossView(marks, tuple(sorted(rows, key=lambda row: row.loss)), bound, max_lr, error)


def marks_for(total_steps: int) -> IntArray:
    """About sixty numbers of steps from 0 to T, evenly and geometrically spaced."""
    even, early = np.linspace(0, total_steps, NUM_EVEN), np.geomspace(1, total_steps, NUM_EARLY)
    return np.unique(np.concatenate((even, early)).round().astype(np.int64))


def _scale(scale: str, evaluator: BlockEvaluator, schedule: Schedule, max_lr: float) -> float:
    """The factor by which the rates of a schedule are multiplied on the quadratic."""
    if scale == "given":
        return 1.0
    if scale == "theory":
        return max_lr / 2 / peak_rate(schedule)
    return best_scale(evaluator, schedule, max_lr)


def _difference(coarse: Mapping[str, Array], fine: Mapping[str, Array]) -> float:
    """The largest relative difference of the losses that are finite at both resolutions."""
    if not coarse:
        return math.inf
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = [coarse[name].sum(axis=0) / fine[name].sum(axis=0) for name in fine]
    return max((float(np.abs(r[np.isfinite(r)] - 1).max(initial=0.0)) for r in ratios), default=0.0)


def _row(name: str, curve: Array, peak: float, bound: float | None) -> LossRow:
    loss = curve.sum(axis=0)
    ratio = None if bound is None else float(loss[-1] / bound) if bound else math.inf
    return LossRow(name, peak, float(loss[-1]), float(curve[0, -1]), float(curve[1, -1]), ratio, loss)
