"""Expected losses along the run, for the figure of the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eigencurve._arrays import Array, IntArray
from eigencurve.planning.result import Plan
from eigencurve.planning.spectrum import quadratic_of
from eigencurve.spectrum.source import SpectrumSource
from eigencurve.theory.blocks import block_curve, blocks_of
from eigencurve.theory.certificate import certificates
from eigencurve.theory.nodes import compress

# Steps at which losses are computed: this many evenly spaced, and this many geometrically from the first step on.
NUM_EVEN, NUM_EARLY = 31, 30
# Number of cells of ln λ, and largest change of the rate within a block; losses are then accurate to about 1 %.
NUM_CELLS, TOLERANCE = 128, 0.005


@dataclass(frozen=True, eq=False)
class LossCurves:
    """Expected losses along the run.

    Attributes:
        marks: Numbers of steps.
        losses: Expected loss of every schedule after each of these, by label; infinite if it diverges.
        bound: Loss below which no schedule with stable rates gets, or None with momentum.
    """

    marks: IntArray
    losses: Mapping[str, Array]
    bound: Array | None


def loss_curves(plan: Plan, source: SpectrumSource) -> LossCurves:
    """The expected loss of every schedule in the table of ``plan``, on the quadratic that the plan rests on."""
    training = plan.training
    problem = quadratic_of(source, training.momentum, training.nesterov)
    # Adam with a constant preconditioner is heavy ball at the rate (1 - β₁)η.
    unit = 1 - training.momentum if training.is_adam else 1.0
    total = plan.schedule.total_steps
    even, early = np.linspace(0, total, NUM_EVEN), np.geomspace(1, total, NUM_EARLY)
    marks = np.unique(np.concatenate((even, early)).round().astype(np.int64))
    nodes = compress(problem.nodes, NUM_CELLS)
    losses = {}
    for row in plan.table.rows:
        blocks = blocks_of(row.schedule, marks, TOLERANCE, 2.0, nodes.inertia).scaled(unit)
        losses[row.label] = block_curve(nodes, blocks).sum(axis=0)
    bound = None if problem.momentum else certificates(problem.nodes, marks, problem.stable_rate)
    return LossCurves(marks, losses, bound)
