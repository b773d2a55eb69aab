"""The winners of a search as rows of a page: their trials and mean curves, from the store alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve.experiments.engine.protocol import Experiment, Finding, Trials
from eigencurve.runs.store import Outcome, Run, Store

Curve = tuple[list[float], list[float]]


@dataclass(frozen=True)
class Row:
    """What was found for one schedule.

    Attributes:
        schedule: its name.
        settings: the winner's.
        chosen: the number by which the winner was chosen; None where nothing was searched.
        num_tried: how many settings were.
        trials: of the winner, by metric.
        curves: the mean over its trials, by metric.
    """

    schedule: str
    settings: Mapping[str, Any]
    chosen: float | None
    num_tried: int
    trials: Mapping[str, Trials]
    curves: Mapping[str, Curve]


@dataclass(frozen=True)
class Shown:
    """What a page shows of every winner.

    Attributes:
        metrics: by their names in the store.
        curves: by what the page calls them: the name in the store, and a factor to show it with.
    """

    metrics: Sequence[str]
    curves: Mapping[str, tuple[str, float]]

    def rows(
        self,
        experiment: Experiment,
        findings: Sequence[Finding],
        num_tried: Mapping[str, int],
        seeds: Sequence[int],
        store: Store,
    ) -> list[Row]:
        """The rows of a table, from the store."""
        rows = []
        for finding in findings:
            settings = finding.fresh.settings
            found = store.outcomes(experiment.name, [Run(settings, seed) for seed in seeds])
            outcomes = [outcome for outcome in found if outcome is not None]
            chosen = finding.chosen_on.mean if finding.chosen_on.values else None
            trials = {metric: trials_of(settings, outcomes, metric) for metric in self.metrics}
            curves = {metric: mean_curve(outcomes, *which) for metric, which in self.curves.items()}
            rows.append(Row(finding.schedule, settings, chosen, num_tried[finding.schedule], trials, curves))
        return rows


def trials_of(settings: Mapping[str, Any], outcomes: Sequence[Outcome], metric: str) -> Trials:
    """The numbers of one metric, those of diverged runs left out and counted."""
    values = tuple(outcome.metrics[metric] for outcome in outcomes if not outcome.diverged)
    return Trials(settings, values, sum(outcome.diverged for outcome in outcomes))


def standard_errors(first: Trials, second: Trials) -> float:
    """How far two means are apart, in units of the standard error of their difference."""
    variance = sum(t.deviation**2 / len(t.values) for t in (first, second) if t.values)
    gap = abs((first.mean or 0.0) - (second.mean or 0.0))
    return gap / math.sqrt(variance) if variance > 0 else math.inf


def mean_curve(outcomes: Sequence[Outcome], name: str, factor: float = 1.0) -> Curve:
    """Times, and the mean over the runs that did not diverge."""
    found = [outcome.curves[name] for outcome in outcomes if not outcome.diverged]
    if not found:
        return [], []
    means = np.mean([[number for _, number in curve] for curve in found], axis=0)
    return [time for time, _ in found[0]], (factor * means).tolist()
