"""The splits of the published runs into fitted and held-out ones, and how good the forecasts of the latter are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.stats import spearmanr

from eigencurve.forecast import Forecast, LoggedRun, Prediction, fit_runs
from paper.data.curves import PublishedRun

LLAMA = "llama_124m"
# What the fitted runs of a split are called in tables, by the schedule's name in the index.
ROLES = {
    "constant": "constant", "stable": "constant", "cosine": "cosine", "cos0": "cosine",
    "two constants": "decay", "lin0.2": "decay",
}  # fmt: skip
LLAMA_FITTED = ("stable", "lin0.2", "cos0")
# A held-out run is longer if it exceeds the fitted ones by this factor.
LONGER = 1.05


@dataclass(frozen=True)
class Split:
    """Runs to fit and runs to forecast."""

    name: str  # name in tables
    model: str  # the model, and for Llama the peak rate
    fitted: Mapping[str, LoggedRun]  # runs to fit, by role: constant, cosine, decay
    held: Mapping[str, LoggedRun]  # runs to forecast, by name
    transfer: bool  # whether the held-out runs have another peak rate
    shaped: bool  # whether the constants of the forecasts were chosen while looking at the held-out runs

    @property
    def family(self) -> str:
        """The first word of the model."""
        return self.model.split()[0]

    @property
    def longest(self) -> int:
        """Number of steps of the longest fitted run."""
        return max(run.total_steps for run in self.fitted.values())


@dataclass(frozen=True, eq=False)
class Scored:
    """A held-out run and its forecast at the logged steps."""

    name: str  # name of the run
    run: LoggedRun  # the run
    prediction: Prediction  # the forecast

    @property
    def true(self) -> float:
        """The last logged loss."""
        return float(self.run.losses[-1])

    @property
    def predicted(self) -> float:
        """The forecast of the last logged loss."""
        return float(self.prediction.loss[-1])

    @property
    def interval(self) -> tuple[float, float]:
        """The 80 % interval of the last logged loss."""
        return float(self.prediction.low[-1]), float(self.prediction.high[-1])

    @property
    def final_error(self) -> float:
        """Forecast minus truth at the last logged step."""
        return self.predicted - self.true

    @cached_property
    def curve_error(self) -> float:
        """The mean absolute error over all logged steps."""
        return float(np.abs(self.prediction.loss - self.run.losses).mean())

    @cached_property
    def points_inside(self) -> float:
        """The fraction of the logged losses inside the interval."""
        inside = (self.run.losses >= self.prediction.low) & (self.run.losses <= self.prediction.high)
        return float(inside.mean())

    @property
    def end_inside(self) -> bool:
        """Whether the last logged loss is inside its interval."""
        low, high = self.interval
        return low <= self.true <= high


@dataclass(frozen=True)
class Score:
    """Means over held-out runs."""

    curve_error: float  # mean absolute error over a curve
    final_error: float  # mean absolute error of the last loss
    rank: float  # Spearman's rank correlation of the last losses; nan for fewer than three runs
    points_inside: float  # fraction of the points inside the 80 % interval, averaged over the curves
    ends_inside: int  # number of last losses inside it
    count: int  # number of runs


@dataclass(frozen=True)
class Outcome:
    """A split with its forecast and the scored runs."""

    split: Split
    forecast: Forecast
    runs: tuple[Scored, ...]

    @property
    def longer(self) -> tuple[Scored, ...]:
        """The held-out runs that are longer than all fitted ones."""
        return tuple(scored for scored in self.runs if scored.run.total_steps > LONGER * self.split.longest)


def splits_of(runs: Sequence[PublishedRun]) -> list[Split]:
    """All splits: the marked ones of the GPT models, the two peak rates of Llama, and from one peak to the other."""
    gpt = [_marked(runs, model) for model in dict.fromkeys(one.model for one in runs if one.model != LLAMA)]
    llama = [one for one in runs if one.model == LLAMA]
    peaks = sorted({one.peak_lr for one in llama}, reverse=True)
    by_peak = {peak: [one for one in llama if one.peak_lr == peak] for peak in peaks}
    same = [_llama(by_peak[peak], peak, peak, peak == peaks[0]) for peak in peaks]
    return gpt + same + [
        _llama([*by_peak[peak], *by_peak[other]], peak, other, other == peaks[0])
        for peak in peaks for other in peaks if other != peak
    ]  # fmt: skip


def _marked(runs: Sequence[PublishedRun], model: str) -> Split:
    mine = [one for one in runs if one.model == model]
    fitted = {ROLES[one.kind]: one.run for one in mine if one.split == "fit"}
    held = {one.run.name: one.run for one in mine if one.split == "predict"}
    return Split(f"GPT {model}", f"GPT {model}", fitted, held, transfer=False, shaped=True)


def _llama(runs: Sequence[PublishedRun], peak: float, other: float, shaped: bool) -> Split:
    fitted = {ROLES[one.kind]: one.run for one in runs if one.peak_lr == peak and one.kind in LLAMA_FITTED}
    left_out = [one for one in runs if one.peak_lr == other and all(one.run is not run for run in fitted.values())]
    model, transfer = f"Llama 124M, peak {peak:g}", other != peak
    name = f"{model} → {other:g}" if transfer else model
    return Split(name, model, fitted, {one.kind: one.run for one in left_out}, transfer, shaped)


def forecast_split(split: Split) -> Outcome:
    """Fit a split's runs and forecast the held-out ones."""
    forecast = fit_runs(list(split.fitted.values()))
    return Outcome(split, forecast, score_runs(forecast, split.held))


def score_runs(forecast: Forecast, held: Mapping[str, LoggedRun]) -> tuple[Scored, ...]:
    """Forecast the logged losses of every held-out run."""
    return tuple(Scored(name, run, forecast.predict(run.schedule, run.steps)) for name, run in held.items())


def score(runs: Sequence[Scored]) -> Score:
    """The means over ``runs``."""
    rank = spearmanr([one.predicted for one in runs], [one.true for one in runs])[0] if len(runs) > 2 else np.nan
    return Score(
        curve_error=float(np.mean([one.curve_error for one in runs])),
        final_error=float(np.mean([abs(one.final_error) for one in runs])),
        rank=float(rank),
        points_inside=float(np.mean([one.points_inside for one in runs])),
        ends_inside=sum(one.end_inside for one in runs),
        count=len(runs),
    )


def fewer_runs(split: Split) -> dict[tuple[str, ...], Score]:
    """The score of a fit to every subset of the fitted runs, by their roles, the smallest subsets first."""
    roles = tuple(split.fitted)
    subsets = [chosen for size in range(1, len(roles) + 1) for chosen in combinations(sorted(roles), size)]
    return {chosen: score(score_runs(fit_runs([split.fitted[r] for r in chosen]), split.held)) for chosen in subsets}


def fit_together(splits: Sequence[Split]) -> dict[str, Score]:
    """The score of one model that is fitted to the runs of all splits at once, by name of the split."""
    forecast = fit_runs([run for split in splits for run in split.fitted.values()])
    one_model = Forecast(forecast.fitted, forecast.names)  # without the fits to one peak rate each
    return {split.name: score(score_runs(one_model, split.held)) for split in splits}


def fixed_exponent(split: Split, gamma: float) -> Score:
    """The score of a fit with a single exponent γ of the curvature's dependence on the rate."""
    return score(score_runs(fit_runs(list(split.fitted.values()), gammas=[gamma]), split.held))
