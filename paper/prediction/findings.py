"""Predicted and measured losses of many schedules from one start, and how well they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from eigencurve.runs import Outcome
from paper.arrays import Array, IntArray
from paper.prediction.scales import Pair


@dataclass(frozen=True, eq=False)
class Finding:
    """The runs from one start, and what each local quadratic predicts for them."""

    start: str  # name of the start
    excess: float  # excess loss of the start
    top: float  # largest eigenvalue of the Hessian at the start, weight decay included
    noise: float  # noise level σ² of a batch at the start, one for all octaves
    pairs: Sequence[Pair]  # schedules with their rates
    marks: IntArray  # numbers of steps at which losses are known
    measured: Array  # mean excess loss of the runs, one row per pair, one column per mark; infinite if a run diverged
    error: Array  # standard error of `measured`
    predicted: Mapping[str, Array]  # predicted excess losses in the same shape, by name of the local quadratic

    def at_rate(self, rate: float) -> list[int]:
        """Positions of the pairs with that rate."""
        return [i for i, pair in enumerate(self.pairs) if pair.rate == rate]


def mean_and_error(outcomes: Sequence[Outcome], num_marks: int) -> tuple[Array, Array]:
    """Mean curve of several runs and its standard error; infinite if a run diverged."""
    if any(outcome.diverged for outcome in outcomes):
        return np.full(num_marks, np.inf), np.full(num_marks, np.nan)
    curves = np.array([[value for _, value in outcome.curve] for outcome in outcomes])
    spread = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.full(num_marks, np.nan)
    return curves.mean(axis=0), spread / np.sqrt(len(curves))


def excess_ratios(finding: Finding, model: str) -> Array:
    """Predicted over measured final excess loss of each pair; NaN if one of them diverges."""
    return _ratios(finding.predicted[model][:, -1], finding.measured[:, -1])


def progress_ratios(finding: Finding, model: str) -> Array:
    """Predicted over measured decrease of the loss of each pair; NaN if a loss does not decrease or diverges."""
    predicted, measured = finding.predicted[model], finding.measured
    with np.errstate(invalid="ignore"):
        return _ratios(predicted[:, 0] - predicted[:, -1], measured[:, 0] - measured[:, -1])


def typical_factor(ratios: Array) -> float:
    """The factor by which a prediction is typically off in either direction, exp(mean abs ln ratio); 1 is perfect.

    >>> typical_factor(np.array([2.0, 0.5, np.nan]))
    2.0
    """
    finite = ratios[np.isfinite(ratios)]
    return float(np.exp(np.abs(np.log(finite)).mean())) if len(finite) else float("nan")


def rank_correlation(finding: Finding, model: str, places: Sequence[int] | None = None) -> float:
    """Spearman's correlation of predicted and measured final losses; a loss that diverges ranks last."""
    chosen = slice(None) if places is None else list(places)
    predicted, measured = finding.predicted[model][chosen, -1], finding.measured[chosen, -1]
    if len(set(predicted)) < 2 or len(set(measured)) < 2:
        return float("nan")
    return float(scipy.stats.spearmanr(predicted, measured).statistic)


def chosen_place(finding: Finding, model: str) -> int:
    """Position of the pair that the model predicts to be best."""
    return int(np.argmin(finding.predicted[model][:, -1]))


def best_place(finding: Finding) -> int:
    """Position of the pair that is best in the runs."""
    return int(np.argmin(finding.measured[:, -1]))


def _ratios(predicted: Array, measured: Array) -> Array:
    usable = np.isfinite(predicted) & np.isfinite(measured) & (predicted > 0) & (measured > 0)
    return np.asarray(np.divide(predicted, measured, out=np.full(len(predicted), np.nan), where=usable))
