"""fit_runs: the two measures of the noisy quadratic, fitted to logged runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve._process import on_one_blas_thread
from eigencurve.forecast.coverage import by_peak, logged_range
from eigencurve.forecast.curve import OUTLIER, Curve, curve_of, own_rows, without_spikes
from eigencurve.forecast.fitted import EnsembleMember, FittedRuns
from eigencurve.forecast.forecast import Forecast, RunEnd
from eigencurve.forecast.model import Law, law_for
from eigencurve.forecast.runs import LoggedRun
from eigencurve.forecast.screening import require_distinct, require_same_loss, require_sound

# The exponents γ that are tried, and their prior: its centre and width.
GAMMAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
GAMMA = (0.35, 0.1)
# Exponents this much less likely than the best one are left out.
NEGLIGIBLE = 1e-3
PASSES = 3
MAX_EVALUATIONS = 300
# The error of the model is at least this fraction of the fall of the losses.
SMALLEST_MISFIT = 0.001
# A run ends at the mean loss of this last share of its steps.
LAST = 0.02


@on_one_blas_thread
def fit_runs(runs: LoggedRun | Sequence[LoggedRun], gammas: Sequence[float] = GAMMAS) -> Forecast:
    r"""Fit the noisy quadratic to logged runs, to forecast the loss of other schedules.

    The expected loss of a schedule is linear in two measures over the curvature λ: the initial error and the noise.
    The fit finds both from the logged curves. The initial error follows a power law; the noise is a smooth function of
    λ. Curvature rises when the rate falls, :math:`\lambda \propto \eta^{-\gamma}`; several γ are fitted and averaged by
    their evidence.

    Runs at several peak rates do not follow one such model closely. A forecast for a logged peak rate therefore uses
    only the runs at that rate, if one of them decays and another decays much more slowly or not at all; other
    forecasts use all runs.

    A point of a run is weighted by its own noise, which is estimated from neighbouring losses, and by how closely such
    a model follows real curves. Do not smooth the losses. A spike counts as if it were four standard deviations high.
    Logs of more than 1,000 rows are averaged over that many blocks, which changes a forecast by far less than its
    interval.

    Args:
        runs: One run or more of the same model, data and loss. Two or three runs with different schedules are usually
            enough.
        gammas: Exponents γ to average over, each in [0, 1).

    Returns:
        The fitted :class:`Forecast`. Its ``warnings`` say what these runs cannot answer.

    Raises:
        ValueError: The runs record different losses, two of them have the same losses, or a loss does not fall, climbs
            back or is far from its neighbours.
        TypeError: ``runs`` is not a sequence of :class:`LoggedRun`.
    """
    chosen = _runs(runs)
    exponents = _gammas(gammas)
    groups = by_peak(chosen)
    whole = _fit(chosen, exponents)
    enough = [group for group in groups if logged_range(group, whole.reference).has_contrast]
    at_one_peak = [_fit(group, exponents) for group in enough] if len(groups) > 1 else []
    metric = ", ".join(dict.fromkeys(run.metric for run in chosen if run.metric))
    return Forecast(whole, tuple(run.name for run in chosen), tuple(at_one_peak), metric, tuple(map(_end, chosen)))


def _end(run: LoggedRun) -> RunEnd:
    last = int(run.steps[-1])
    return RunEnd(run.peak_lr, last, float(run.losses[run.steps > (1 - LAST) * last].mean()))


def _fit(runs: Sequence[LoggedRun], gammas: Sequence[float]) -> FittedRuns:
    reference = max(run.peak_lr for run in runs)
    travel = max(float(run.rates[: run.steps[-1]].sum()) for run in runs) / reference
    fall = _fall(runs)
    unit = 2.0 ** round(math.log2(fall))  # so that the size of the losses does not matter
    law = law_for(travel, fall / unit)
    curves = [curve_of(run, reference, travel, law.spread, unit, own_rows(run, runs)) for run in runs]
    members = _members(law, curves, gammas, reference)
    misfit = _misfit(law, curves, members, reference)
    return FittedRuns(law, reference, members, logged_range(runs, reference), misfit).in_unit(unit)


def _members(
    law: Law, curves: Sequence[Curve], gammas: Sequence[float], reference: float
) -> tuple[EnsembleMember, ...]:
    start = law.start(min(float(curve.losses.min()) for curve in curves))
    fits, logs = [], []
    for gamma in gammas:
        problem = _Problem.of(law, curves, gamma, reference)
        start, covariance, evidence = problem.solve(start)
        fits.append((gamma, start, covariance))
        logs.append(evidence - 0.5 * ((gamma - GAMMA[0]) / GAMMA[1]) ** 2)
    weights = np.exp(np.array(logs) - max(logs))
    weights = np.where(weights > NEGLIGIBLE, weights, 0.0)
    weights /= weights.sum()
    return tuple(
        EnsembleMember(gamma, float(weight), frozen(parameters), frozen(covariance))
        for (gamma, parameters, covariance), weight in zip(fits, weights, strict=True)
        if weight
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """The least-squares problem for one γ."""

    law: Law
    responses: list[tuple[Array, Array, float]]
    losses: Array
    deviations: Array

    @classmethod
    def of(cls, law: Law, curves: Sequence[Curve], gamma: float, reference: float) -> _Problem:
        parts = [(*_responses(law, curve, gamma, reference), curve.log_ratio) for curve in curves]
        losses = np.concatenate([curve.losses for curve in curves])
        return cls(law, parts, losses, np.concatenate([curve.deviations for curve in curves]))

    def solve(self, start: Array) -> tuple[Array, Array, float]:
        """The parameters, their covariance and the logarithm of the evidence."""
        deviations, parameters = self.deviations, start
        for _ in range(PASSES):
            result = self._least_squares(parameters, deviations)
            parameters = result.x
            outliers = np.abs(self._losses(parameters) - self.losses) / self.deviations / OUTLIER
            deviations = self.deviations * np.sqrt(np.maximum(1, outliers))
            if outliers.max() <= 1:
                break
        information = result.jac.T @ result.jac
        log_det = float(np.linalg.slogdet(information)[1])
        return parameters, np.linalg.inv(information), -float(result.cost) - 0.5 * log_det

    def _least_squares(self, start: Array, deviations: Array) -> Any:
        matrix, values = self.law.prior()

        def residuals(parameters: Array) -> Array:
            return np.concatenate(((self._losses(parameters) - self.losses) / deviations, matrix @ parameters - values))

        def slopes(parameters: Array) -> Array:
            rows = [self.law.slopes(parameters, *part) for part in self.responses]
            return np.vstack((np.vstack(rows) / deviations[:, None], matrix))

        # A trial step may go far out; the search rejects it if the loss overflows there.
        with np.errstate(over="ignore", invalid="ignore"):
            return least_squares(residuals, start, slopes, method="lm", x_scale="jac", max_nfev=MAX_EVALUATIONS)

    def _losses(self, parameters: Array) -> Array:
        return np.concatenate([self.law.loss(parameters, *part) for part in self.responses])


def _responses(law: Law, curve: Curve, gamma: float, reference: float) -> tuple[Array, Array]:
    return law.responses(curve.run.schedule, reference, gamma, curve.steps)


def _misfit(law: Law, curves: Sequence[Curve], members: Sequence[EnsembleMember], reference: float) -> float:
    """The standard deviation of the model's own error: what the best member leaves unexplained in later halves."""
    best = max(members, key=lambda member: member.weight)
    squares = []
    for curve in curves:
        bias, variance = _responses(law, curve, best.gamma, reference)
        late = curve.steps >= curve.middle
        off = (law.loss(best.parameters, bias, variance, curve.log_ratio) - curve.losses)[late]
        squares.append(max(float(np.median(off**2)) / 0.455 - float(np.median(curve.sampling[late])), 0.0))
    return max(math.sqrt(float(np.mean(squares))), SMALLEST_MISFIT * law.spread)


def _fall(runs: Sequence[LoggedRun]) -> float:
    """The fall of the losses, without the first and largest ones and without spikes; the unit of the prior."""
    calm = [without_spikes(run.losses) for run in runs]
    return max(float(np.quantile(losses, 0.95)) for losses in calm) - min(float(losses.min()) for losses in calm)


def _runs(runs: Any) -> list[LoggedRun]:
    chosen = [runs] if isinstance(runs, LoggedRun) else list(runs) if isinstance(runs, Sequence) else []
    if not chosen or not all(isinstance(run, LoggedRun) for run in chosen):
        _check.wrong_type("fit_runs", "runs", "one or more of LoggedRun", runs, "See load_run.")
    require_sound(chosen)
    require_same_loss(chosen)
    require_distinct(chosen)
    return chosen


def _gammas(gammas: Sequence[float]) -> list[float]:
    chosen = sorted({_check.at_least("fit_runs", "gammas", gamma, 0.0) for gamma in gammas})
    if not chosen or chosen[-1] >= 1:
        _check.refuse("fit_runs", "gammas", "one or more numbers in [0, 1)", gammas)
    return chosen
