"""What a store of finished runs has to show: each schedule at its best settings, with mean and spread over seeds."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve._arrays import Array
from eigencurve.experiments.store import Store

# The setting that tells schedules apart, and the one that tells budgets apart, where a run has them.
SCHEDULE, BUDGET = "schedule", "epochs"
# A metric is better when it is lower, unless its name has one of these words.
HIGHER_IS_BETTER = ("accuracy", "acc", "score")


@dataclass(frozen=True, eq=False)
class Trial:
    """The runs of one setting over its seeds.

    Attributes:
        schedule: its name.
        settings: all of them, the schedule's among them.
        values: by metric, the numbers of the runs that did not diverge.
        num_diverged: how many did.
        curve: times, and the mean over the seeds; None where none was kept.
    """

    schedule: str
    settings: Mapping[str, Any]
    values: Mapping[str, Sequence[float]]
    num_diverged: int
    curve: tuple[Array, Array] | None

    def text(self, metric: str) -> str:
        """Mean ± standard deviation, with the number of seeds."""
        found = self.values.get(metric, ())
        if not found:
            return "diverged"
        spread = statistics.stdev(found) if len(found) > 1 else 0.0
        return f"{statistics.fmean(found):.4g} ± {spread:.2g} ({len(found)})"


@dataclass(frozen=True, eq=False)
class Panel:
    """One budget of one experiment.

    Attributes:
        experiment: its name.
        budget: such as ``"epochs 5"``; empty where runs have none.
        metrics: names, the one that settings were chosen by first.
        trials: each schedule at its best settings, the best first.
        num_settings: how many settings were tried in all.
    """

    experiment: str
    budget: str
    metrics: tuple[str, ...]
    trials: tuple[Trial, ...]
    num_settings: int


def panels_of(store: Store) -> list[Panel]:
    """Every experiment of a store and every budget in it."""
    found = []
    for experiment in store.experiments():
        budgets: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in store.rows(experiment):
            budget = row["settings"].get(BUDGET)
            budgets["" if budget is None else f"{BUDGET} {budget}"].append(row)
        found += [_panel(experiment, budget, budgets[budget]) for budget in sorted(budgets, key=_natural)]
    return found


def prefers_higher(metric: str) -> bool:
    """Whether more of ``metric`` is better, by its name."""
    return any(word in metric.lower() for word in HIGHER_IS_BETTER)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings in a line; a list of numbers is only counted.

    >>> settings_text({"lr": 0.1, "min_lr": None, "curve": [[0, 1], [5, 2]]})
    'lr 0.1, min_lr none, curve of 2 values'
    """
    return ", ".join(f"{name} {_value_text(value)}" for name, value in settings.items())


def _value_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | dict):
        return f"of {len(value)} values"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _panel(experiment: str, budget: str, rows: Sequence[Mapping[str, Any]]) -> Panel:
    grouped: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[json.dumps(row["settings"], sort_keys=True)].append(row)
    trials = [_trial(group) for group in grouped.values()]
    metrics = tuple(dict.fromkeys(name for row in rows for name in row["metrics"]))
    best: dict[str, Trial] = {}
    for trial in sorted(trials, key=lambda trial: _rank(trial, metrics)):
        best.setdefault(trial.schedule, trial)
    return Panel(experiment, budget, metrics, tuple(best.values()), len(trials))


def _trial(rows: Sequence[Mapping[str, Any]]) -> Trial:
    settings = rows[0]["settings"]
    kept = [row for row in rows if not row["diverged"]]
    names = dict.fromkeys(name for row in kept for name in row["metrics"])
    values = {name: [row["metrics"][name] for row in kept if name in row["metrics"]] for name in names}
    label = str(settings.get(SCHEDULE) or settings_text(settings))
    return Trial(label, settings, values, len(rows) - len(kept), _mean_curve(kept))


def _mean_curve(rows: Sequence[Mapping[str, Any]]) -> tuple[Array, Array] | None:
    curves = [np.array(row["curve"], dtype=np.float64) for row in rows if row["curve"]]
    if not curves or any(curve.shape != curves[0].shape for curve in curves):
        return None
    return curves[0][:, 0], np.mean([curve[:, 1] for curve in curves], axis=0)


def _rank(trial: Trial, metrics: Sequence[str]) -> tuple[bool, int, float]:
    """Settings of which no run diverged come first, then by the mean of the first metric."""
    values = trial.values.get(metrics[0], ()) if metrics else ()
    if not values:
        return True, trial.num_diverged, 0.0
    mean = statistics.fmean(values)
    return trial.num_diverged > 0, trial.num_diverged, -mean if prefers_higher(metrics[0]) else mean


def _natural(budget: str) -> tuple[float, str]:
    last = budget.rsplit(" ", 1)[-1]
    return (float(last), budget) if last.replace(".", "", 1).isdigit() else (0.0, budget)
