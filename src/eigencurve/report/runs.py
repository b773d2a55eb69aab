"""Summarise a store of finished runs: each schedule at its best settings, with mean and spread over seeds."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve._arrays import Array
from eigencurve.runs.store import Store

# The setting that names the schedule, and the settings that identify a problem and its budget.
SCHEDULE = "schedule"
PROBLEM = ("model", "split", "epochs")
TIME = "epochs"
# The best settings are chosen by the first of these metrics that a run has, otherwise by its first metric.
CHOSEN_BY = ("accuracy", "valid")
# Lower is better, unless the name of the metric contains one of these words.
HIGHER_IS_BETTER = ("accuracy", "acc", "score", "top")
# Experiments with this prefix store a spectrum in place of a training curve.
SPECTRA = "spectra/"

Curve = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Trial:
    """All runs with the same settings and different seeds.

    Attributes:
        schedule: Name of the schedule.
        settings: All settings of the runs, including the schedule.
        values: Finite values of the runs that did not diverge, by metric.
        num_diverged: Number of runs that diverged, or have a metric that is not finite.
        curves: Times and mean over the seeds, by name. A run's only curve has the empty name.
    """

    schedule: str
    settings: Mapping[str, Any]
    values: Mapping[str, Sequence[float]]
    num_diverged: int
    curves: Mapping[str, Curve]

    def text(self, metric: str) -> str:
        """Mean ± standard deviation, with the number of seeds."""
        found = self.values.get(metric, ())
        if not found:
            return "diverged"
        spread = f" ± {statistics.stdev(found):.2g}" if len(found) > 1 else ""
        return f"{statistics.fmean(found):.4g}{spread} ({len(found)})"


@dataclass(frozen=True, eq=False)
class Panel:
    """One problem of an experiment at one training budget.

    Attributes:
        experiment: Name of the experiment.
        problem: Description such as ``"model vgg16, epochs 5"``, or empty if the runs have none.
        metrics: Names of the metrics, first the one that the best settings were chosen by.
        trials: Each schedule at its best settings, the best first.
        num_settings: Number of settings that were tried.
        common: Settings that all runs share.
    """

    experiment: str
    problem: str
    metrics: tuple[str, ...]
    trials: tuple[Trial, ...]
    num_settings: int
    common: Mapping[str, Any]

    def own(self, trial: Trial) -> dict[str, Any]:
        """Settings of a trial that the others do not share, without the schedule."""
        shared = {SCHEDULE, *PROBLEM, *self.common}
        return {name: value for name, value in trial.settings.items() if name not in shared}


def panels_of(store: Store) -> list[Panel]:
    """Collect the training runs of a store, one panel per experiment, problem and budget."""
    found = []
    for experiment in store.experiments():
        if experiment.startswith(SPECTRA):
            continue
        problems: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
        for row in store.rows(experiment):
            problems[tuple(row["settings"].get(name) for name in PROBLEM)].append(row)
        found += [_panel(experiment, problems[key]) for key in sorted(problems, key=_order)]
    return found


def prefers_higher(metric: str) -> bool:
    """Whether a higher value of ``metric`` is better, judging by its name."""
    return any(word in metric.lower() for word in HIGHER_IS_BETTER)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Format settings in one line. Lists are only counted.

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


def _panel(experiment: str, rows: Sequence[Mapping[str, Any]]) -> Panel:
    grouped: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[json.dumps(row["settings"], sort_keys=True)].append(row)
    trials = [_trial(group) for group in grouped.values()]
    metrics = _metrics(rows)
    best: dict[str, Trial] = {}
    for trial in sorted(trials, key=lambda trial: _rank(trial, metrics)):
        best.setdefault(trial.schedule, trial)
    problem = {name: rows[0]["settings"][name] for name in PROBLEM if name in rows[0]["settings"]}
    return Panel(
        experiment, settings_text(problem), metrics, tuple(best.values()), len(trials), _common(trials, problem)
    )


def _metrics(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    names = list(dict.fromkeys(name for row in rows if not row["diverged"] for name in row["metrics"]))
    return tuple(sorted(names, key=lambda name: CHOSEN_BY.index(name) if name in CHOSEN_BY else len(CHOSEN_BY)))


def _common(trials: Sequence[Trial], problem: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that are the same in all trials, without those of the problem; none if there is only one trial."""
    first = trials[0].settings
    shared = [name for name in first if all(name in t.settings and t.settings[name] == first[name] for t in trials)]
    return {name: first[name] for name in shared if name not in (SCHEDULE, *problem)} if len(trials) > 1 else {}


def _trial(rows: Sequence[Mapping[str, Any]]) -> Trial:
    settings = rows[0]["settings"]
    kept = [row for row in rows if not row["diverged"]]
    names = dict.fromkeys(name for row in kept for name in row["metrics"])
    values = {name: [row["metrics"][name] for row in kept if _is_finite(row["metrics"].get(name))] for name in names}
    label = str(settings.get(SCHEDULE) or settings_text(settings))
    num_diverged = len(rows) - sum(all(map(_is_finite, row["metrics"].values())) for row in kept)
    return Trial(label, settings, values, num_diverged, _mean_curves([_curves(row["curve"]) for row in kept]))


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _curves(kept: Any) -> dict[str, Array]:
    """Curves of a row by name. A stored list of pairs is a single curve; a mapping also holds named curves."""
    fields = kept if isinstance(kept, Mapping) else {"curve": kept, "curves": {}}
    every = {"": fields["curve"], **fields["curves"]}
    return {name: np.array(pairs, dtype=np.float64) for name, pairs in every.items() if pairs}


def _mean_curves(runs: Sequence[Mapping[str, Array]]) -> dict[str, Curve]:
    """Mean of each curve that all runs have at the same times."""
    found: dict[str, Curve] = {}
    for name, first in runs[0].items() if runs else ():
        curves = [run[name] for run in runs if name in run and run[name].shape == first.shape]
        if len(curves) == len(runs):
            found[name] = first[:, 0], np.mean([curve[:, 1] for curve in curves], axis=0)
    return found


def _rank(trial: Trial, metrics: Sequence[str]) -> tuple[bool, int, float]:
    """Sort key: settings without diverged runs first, then by the mean of the first metric."""
    values = trial.values.get(metrics[0], ()) if metrics else ()
    if not values:
        return True, trial.num_diverged, 0.0
    mean = statistics.fmean(values)
    return trial.num_diverged > 0, trial.num_diverged, -mean if prefers_higher(metrics[0]) else mean


def _order(key: tuple[Any, ...]) -> tuple[tuple[float, str], ...]:
    """Sort key: numbers by size, words alphabetically."""
    return tuple((float(value), "") if isinstance(value, int | float) else (0.0, str(value)) for value in key)
