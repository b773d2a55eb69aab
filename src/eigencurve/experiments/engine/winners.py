"""The winners of a search: their trials and mean curves, read from the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve.experiments.engine.protocol import Experiment, Settings, Trials, search, trials_of
from eigencurve.experiments.engine.request import Request
from eigencurve.runs.store import Outcome, Run

Curve = tuple[list[float], list[float]]


@dataclass(frozen=True)
class Winner:
    """The best settings of one schedule's grid.

    Attributes:
        schedule: Name of the schedule.
        settings: Settings of its trials.
        chosen: Metric by which the settings were chosen; None if there was nothing to choose.
        num_tried: Number of settings in the grid.
        trials: Trials on fresh seeds, by metric.
        curves: Mean over the trials, by name of the curve.
    """

    schedule: str
    settings: Settings
    chosen: float | None
    num_tried: int
    trials: Mapping[str, Trials]
    curves: Mapping[str, Curve]

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
    """The numbers that a page reports for each winner.

    Attributes:
        metrics: Names of the metrics.
        curves: For each curve on the page, the name of the stored curve and a factor to multiply it by.
    """

    metrics: Sequence[str]
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
    """Search every grid (see :func:`~eigencurve.experiments.engine.protocol.search`) and collect the winners.

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
        settings = finding.fresh.settings
        stored = request.store.outcomes(experiment.name, [Run(settings, seed) for seed in fresh_seeds])
        outcomes = [outcome for outcome in stored if outcome is not None]
        trials = {metric: trials_of(settings, outcomes, metric) for metric in reported.metrics}
        curves = {name: mean_curve(outcomes, *which) for name, which in reported.curves.items()}
        num_tried = len(grids[finding.schedule])
        winners.append(Winner(finding.schedule, settings, finding.chosen_on.mean, num_tried, trials, curves))
    return winners


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
