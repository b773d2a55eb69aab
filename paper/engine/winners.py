"""The winners of a search: their trials and mean curves, read from the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve.runs import Outcome, Run
from paper.engine.protocol import Experiment, Settings, Trials, best_of, search, trials_of
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


def find_winners(
    experiment: Experiment,
    grids: Mapping[str, Sequence[Settings]],
    selection_seeds: Sequence[int],
    fresh_seeds: Sequence[int],
    request: Request,
    reported: ReportedMetrics,
    final: Callable[[Settings], Settings] = dict,
) -> list[Winner]:
    """Search every grid (see :func:`~paper.engine.protocol.search`) and collect the winners.

    Args:
        experiment: Experiment to run.
        grids: Settings to try, by name of the schedule.
        selection_seeds: Seeds on which the winner is chosen.
        fresh_seeds: Other seeds, on which the winner is reported.
        request: Store, workers and progress.
        reported: Metrics and curves to collect.
        final: Maps the winning settings to those of its trials.
    """
    found = search(
        experiment, grids, selection_seeds, fresh_seeds, request.store, request.workers, request.progress, final
    )
    winners = []
    for finding in found:
        settings, num_tried = finding.fresh.settings, len(grids[finding.schedule])
        outcomes = _finished(experiment, settings, fresh_seeds, request)
        winners.append(_winner(finding.schedule, settings, finding.chosen_on.mean, num_tried, outcomes, reported))
    return winners


@dataclass(frozen=True)
class Missing:
    """The runs of one schedule that the store does not have yet."""

    schedule: str  # name of the schedule
    num_grid: int  # number of missing runs of its grid
    num_trials: int  # number of missing trials of its winner; all of them while the grid is not complete


def finished_winners(
    experiment: Experiment,
    grids: Mapping[str, Sequence[Settings]],
    selection_seeds: Sequence[int],
    fresh_seeds: Sequence[int],
    request: Request,
    reported: ReportedMetrics,
    final: Callable[[Settings], Settings] = dict,
) -> tuple[list[Winner], list[Missing]]:
    """The winners of the grids that are complete, with their trials so far, and what is missing; nothing is run.

    The arguments are those of :func:`find_winners`.
    """
    winners, missing = [], []
    for schedule, grid in grids.items():
        tried = [Run(settings, seed) for settings in grid for seed in selection_seeds] if len(grid) > 1 else []
        num_grid = request.store.outcomes(experiment.name, tried).count(None)
        if num_grid:
            missing.append(Missing(schedule, num_grid, len(fresh_seeds)))
            continue
        chosen = best_of(experiment, grid, selection_seeds, request.store)
        settings = final(chosen.settings)
        outcomes = _finished(experiment, settings, fresh_seeds, request)
        if len(outcomes) < len(fresh_seeds):
            missing.append(Missing(schedule, 0, len(fresh_seeds) - len(outcomes)))
        if outcomes:
            winners.append(_winner(schedule, settings, chosen.mean, len(grid), outcomes, reported))
    return winners, missing


def _finished(experiment: Experiment, settings: Settings, seeds: Sequence[int], request: Request) -> dict[int, Outcome]:
    """The outcomes that are in the store, by seed."""
    found = request.store.outcomes(experiment.name, [Run(settings, seed) for seed in seeds])
    return {seed: outcome for seed, outcome in zip(seeds, found, strict=True) if outcome is not None}


def _winner(
    schedule: str, settings: Settings, chosen: float | None, num_tried: int, outcomes: Mapping[int, Outcome],
    reported: ReportedMetrics,
) -> Winner:  # fmt: skip
    trials = {metric: trials_of(settings, outcomes, metric) for metric in reported.metrics}
    curves = {name: mean_curve(list(outcomes.values()), *which) for name, which in reported.curves.items()}
    return Winner(schedule, settings, chosen, num_tried, trials, curves)


def mean_curve(outcomes: Sequence[Outcome], name: str, factor: float = 1.0) -> Curve:
    """Times of a curve, and its mean over the runs that did not diverge."""
    found = [outcome.curves[name] for outcome in outcomes if not outcome.diverged]
    if not found:
        return [], []
    means = np.mean([[number for _, number in curve] for curve in found], axis=0)
    return [time for time, _ in found[0]], (factor * means).tolist()


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
