"""The figures of the study: curves of each problem, and where predictions stop working."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from eigencurve.figures.prediction import PredictedCurve, limits_figure, prediction_figure
from paper.arrays import Array
from paper.prediction.findings import Finding, progress_ratios, typical_factor
from paper.prediction.study import END, START, NoiseEffect, ProblemFindings, knows_minimum, ratios

LIMITS = "prediction_limits.png"


def figures(found: Sequence[ProblemFindings], effects: Sequence[NoiseEffect]) -> dict[str, Figure]:
    """All figures, by file name."""
    every = {file_name(one): problem_figure(one, effects if one.problem.ridge else ()) for one in found}
    return {LIMITS: limits(found), **every}


def file_name(found: ProblemFindings) -> str:
    """Name of the file of a problem's figure."""
    return f"prediction_{found.problem.name}.png"


def problem_figure(found: ProblemFindings, effects: Sequence[NoiseEffect] = ()) -> Figure:
    """The curves of the five schedules at the shown rate from the usual start, and the final losses of all pairs."""
    finding, has_minimum = found.findings[0], found.problem.is_minimum
    panels = {
        f"{model}, rate {found.plan.shown_rate:g}": _curves(found, finding, model, effects)
        for model in ((END,) if has_minimum else (END, START))
    }
    drawn = [model for model in finding.predicted if knows_minimum(found, model) or not has_minimum]
    measured = _final(found, finding.measured)
    finals = {model: (_final(found, finding.predicted[model]), measured) for model in drawn}
    what = ("excess loss", "final excess loss") if has_minimum else ("loss", "decrease of the loss")
    return prediction_figure(panels, finals, *what, log=has_minimum)


def limits(found: Sequence[ProblemFindings]) -> Figure:
    """How far predictions are off: from several distances to the minimum, and from several points of an earlier run."""
    factors = {
        one.problem.title: (
            np.array([finding.excess for finding in one.findings]),
            np.array([typical_factor(ratios(one, finding, END)) for finding in one.findings]),
        )
        for one in found
        if one.problem.is_minimum
    }
    progress = {model: _progress(one, model) for one in found if not one.problem.is_minimum for model in (END, START)}
    return limits_figure(factors, progress)


def _curves(
    found: ProblemFindings, finding: Finding, model: str, effects: Sequence[NoiseEffect]
) -> list[PredictedCurve]:
    base = 0.0 if found.problem.is_minimum else found.problem.end_loss
    size = found.problem.batch_size
    exact = {(e.pair.kind, e.pair.rate): e.curve for e in effects if e.batch_size == size}
    return [
        PredictedCurve(
            finding.pairs[i].kind, finding.marks, base + finding.measured[i], finding.error[i],
            base + finding.predicted[model][i], exact.get((finding.pairs[i].kind, finding.pairs[i].rate)),
        )
        for i in finding.at_rate(found.plan.shown_rate)
    ]  # fmt: skip


def _progress(found: ProblemFindings, model: str) -> tuple[Array, Array, Array, Array]:
    """Loss of each start, and the least, median and greatest ratio of the progress; without starts that have none."""
    rows = []
    for finding in found.findings:
        values = progress_ratios(finding, model)
        known = values[np.isfinite(values)]
        if len(known):
            rows.append((found.problem.end_loss + finding.excess, known.min(), np.median(known), known.max()))
    loss, low, median, high = np.array(rows).reshape(-1, 4).T
    return loss, low, median, high


def _final(found: ProblemFindings, curves: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(curves[:, -1] if found.problem.is_minimum else curves[:, 0] - curves[:, -1])
