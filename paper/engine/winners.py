"""The winners of a search: their trials and mean curves, read from the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve.runs import Outcome, Run
from paper.engine.protocol import Experiment, Settings, Trials, best_of, search, stored_outcomes, trials_of
from paper.engine.request import Request

Curve = tuple[list[float], list[float]]


@dataclass(frozen=True)
class Winner:
    """The best settings of one schedule's grid."""

    schedule: str  # name of the schedule
    settings: Settings  # settings of its trials
    chosen: float | None  # metric by which the settings were chosen; None if there was nothing to choose
    num_tried: int  # number of settings in the grid
    trials: Mapping[str, Trials]  # trials on fresh seeds, by metric
    curves: Mapping[str, Curve]  # mean over the trials, by name of the curve

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "schedule": self.schedule, "settings": dict(self.settings), "validation": self.chosen,
            "trials": {name: list(trials.values) for name, trials in self.trials.items()},
            "diverged": max(trials.num_diverged for trials in self.trials.values()),
        }  # fmt: skip

    def chosen_text(self, digits: int) -> str:
        """The metric by which the settings were chosen, and the number of settings tried."""
        return "–" if self.chosen is None else f"{self.chosen:.{digits}f} (best of {self.num_tried})"


@dataclass(frozen=True)
class ReportedMetrics:
    """The numbers that a page reports for each winner."""

    metrics: Sequence[str]  # names of the metrics
    # For each curve on the page, the name of the stored curve and a factor to multiply it by.
    curves: Mapping[str, tuple[str, float]]


@dataclass(frozen=True)
class Missing:
    """The runs of one schedule that the store does not have yet."""

    schedule: str  # name of the schedule
    num_grid: int  # number of missing runs of its grid
    num_trials: int  # number of missing trials of its winner; all of them while the grid is not complete


@dataclass(frozen=True, eq=False)
class GridSearch:
    """A search of one grid per schedule, and trials of each winner; see :func:`~paper.engine.protocol.search`."""

    experiment: Experiment
    grids: Mapping[str, Sequence[Settings]]  # settings to try, by name of the schedule
    selection_seeds: Sequence[int]  # seeds on which the winner is chosen
    fresh_seeds: Sequence[int]  # other seeds, on which the winner is reported
    request: Request  # store, workers and progress
    reported: ReportedMetrics
    final: Callable[[Settings], Settings] = dict  # maps the winning settings to those of its trials

    def winners(self) -> list[Winner]:
        """Do all runs that the store lacks, and collect the winners."""
        seeds, how = (self.selection_seeds, self.fresh_seeds), self.request
        search(self.experiment, self.grids, *seeds, how.store, how.workers, how.progress, self.final)
        return self.finished()[0]

    def finished(self) -> tuple[list[Winner], list[Missing]]:
        """The winners of the grids that are complete, with their trials so far, and what is missing; nothing is run."""
        winners, missing = [], []
        for schedule, grid in self.grids.items():
            tried = [Run(settings, seed) for settings in grid for seed in self.selection_seeds] if len(grid) > 1 else []
            num_grid = self.request.store.outcomes(self.experiment.name, tried).count(None)
            if num_grid:
                missing.append(Missing(schedule, num_grid, len(self.fresh_seeds)))
                continue
            chosen = best_of(self.experiment, grid, self.selection_seeds, self.request.store)
            settings = self.final(chosen.settings)
            outcomes = stored_outcomes(self.experiment, settings, self.fresh_seeds, self.request.store)
            if len(outcomes) < len(self.fresh_seeds):
                missing.append(Missing(schedule, 0, len(self.fresh_seeds) - len(outcomes)))
            if outcomes:
                winners.append(self._winner(schedule, chosen, outcomes))
        return winners, missing

    def _winner(self, schedule: str, chosen: Trials, outcomes: Mapping[int, Outcome]) -> Winner:
        settings = self.final(chosen.settings)
        trials = {metric: trials_of(settings, outcomes, metric) for metric in self.reported.metrics}
        runs = list(outcomes.values())
        curves = {name: mean_curve(runs, *which) for name, which in self.reported.curves.items()}
        return Winner(schedule, settings, chosen.mean, len(self.grids[schedule]), trials, curves)


def mean_curve(outcomes: Sequence[Outcome], name: str, factor: float = 1.0) -> Curve:
    """Times of a curve, and its mean over the runs that did not diverge."""
    curves = [outcome.curves[name] for outcome in outcomes if not outcome.diverged]
    if not curves:
        return [], []
    means = np.mean([[number for _, number in curve] for curve in curves], axis=0)
    return [time for time, _ in curves[0]], (factor * means).tolist()


def settings_text(settings: Settings) -> str:
    """The searched settings in a few words.

    >>> settings_text({"schedule": "cosine", "lr": 0.3, "min_lr": 0.01})
    'lr 0.3, last 0.01'
    """
    shown = [f"lr {settings['lr']:g}"]
    if "min_lr" in settings:
        shown.append("last rate free" if settings["min_lr"] is None else f"last {settings['min_lr']:g}")
    if "intervals" in settings:
        shown.append(f"{settings['intervals']} intervals, factor {settings['factor']:g}")
    for name, letter in (("r", "r"), ("ema_decay", "α")):
        if name in settings:
            shown.append(f"{letter} {settings[name]:.3g}")
    return ", ".join(shown)
