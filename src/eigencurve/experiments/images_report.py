"""Pages of the image experiments: tables, curves and what follows from them, made from the rows of a store alone."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eigencurve._files import write_atomically
from eigencurve.experiments.origin import origin_here
from eigencurve.experiments.protocol import Experiment, Finding, Trials
from eigencurve.experiments.store import Outcome, Run, Store
from eigencurve.report.figures import curves_figure

Curve = tuple[list[float], list[float]]
HEADINGS = {"loss": "training loss", "accuracy": "test accuracy (%)", "top5": "top-5 accuracy (%)"}
DIGITS = {"loss": 3, "accuracy": 2, "top5": 2}
CURVES = {"loss": "train_loss", "accuracy": "accuracy"}


@dataclass(frozen=True)
class Row:
    """What was found for one schedule.

    Attributes:
        schedule: its name.
        settings: the winner's.
        validation: the winner's accuracy on the validation images, in percent; None where nothing was searched.
        num_tried: how many settings were.
        trials: of the winner, by metric.
        curves: the mean over its trials, by metric.
    """

    schedule: str
    settings: Mapping[str, Any]
    validation: float | None
    num_tried: int
    trials: Mapping[str, Trials]
    curves: Mapping[str, Curve]


@dataclass(frozen=True)
class Section:
    """One network at one budget: our rows, and the paper's numbers for them by schedule, one a metric."""

    heading: str
    rows: Sequence[Row]
    published: Mapping[str, Sequence[str]]
    metrics: Sequence[str] = ("loss", "accuracy")

    def table(self) -> list[str]:
        """A Markdown table, the paper's numbers beside ours."""
        ours = [HEADINGS[metric] for metric in self.metrics]
        paper = [f"the paper's, full scale: {name}" for name in ours]
        head = ["schedule", *ours, *paper, "winner of the grid", "its validation accuracy (%)"]
        lines = [_line(head), _line(["---"] * len(head))]
        for row in self.rows:
            published = self.published.get(row.schedule, ["–"] * len(ours))
            numbers = [row.trials[metric].text(DIGITS[metric]) for metric in self.metrics]
            chosen = "–" if row.validation is None else f"{row.validation:.2f} (best of {row.num_tried})"
            lines.append(_line([row.schedule, *numbers, *published, winner_text(row.settings), chosen]))
        return lines

    def claims(self) -> list[str]:
        """What the trials say, in sentences: the best by each metric, what is close to it, and the paper's winner."""
        return [line for metric in self.metrics for line in self._claims(metric)]

    def _claims(self, metric: str) -> list[str]:
        ranked = self.ranked(metric)
        if not ranked:
            return [f"By {HEADINGS[metric]}: every trial diverged."]
        best = ranked[0].trials[metric]
        close = [row.schedule for row in ranked[1:] if standard_errors(best, row.trials[metric]) < 2]
        near = f" Within two standard errors of it: {', '.join(close)}." if close else " No other is within two"
        tail = near if close else f"{near} standard errors of it."
        lines = [f"By {HEADINGS[metric]}, {ranked[0].schedule} is best: {best.text(DIGITS[metric])}.{tail}"]
        return lines + self._beside_paper(metric, ranked)

    def _beside_paper(self, metric: str, ranked: Sequence[Row]) -> list[str]:
        """Where the paper's best schedule comes among those of ours that the paper has too."""
        place = list(self.metrics).index(metric)
        numbers = {name: _number(row[place]) for name, row in self.published.items()}
        both = [row for row in ranked if numbers.get(row.schedule) is not None]
        if len(both) < 2:
            return []
        sign = 1 if metric == "loss" else -1
        named = {row.schedule: row for row in both}
        theirs = min(named, key=lambda name: sign * (numbers[name] or 0.0))
        rank = [row.schedule for row in both].index(theirs) + 1
        if rank == 1:
            return [f"Of the {len(both)} schedules that the paper has too, {theirs} is best here as there."]
        gap = standard_errors(both[0].trials[metric], named[theirs].trials[metric])
        return [
            f"That differs from the paper: of the {len(both)} schedules that both have, {theirs} is best there and"
            f" number {rank} here, {gap:.1f} standard errors behind {both[0].schedule}."
        ]

    def ranked(self, metric: str) -> list[Row]:
        """Rows with a number, the best first."""
        sign = 1 if metric == "loss" else -1
        found = [row for row in self.rows if row.trials[metric].mean is not None]
        return sorted(found, key=lambda row: sign * (row.trials[metric].mean or 0.0))


@dataclass(frozen=True)
class ImageReport:
    """A page.

    Attributes:
        name: of the files.
        title: of the page.
        description: what was run, in paragraphs.
        sections: networks and budgets.
        notes: what else is to be said, computed from the rows.
    """

    name: str
    title: str
    description: Sequence[str]
    sections: Sequence[Section]
    notes: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {
            "table": self.name,
            "sections": {
                section.heading: [
                    {
                        "schedule": row.schedule, "settings": dict(row.settings), "validation": row.validation,
                        "trials": {name: list(trials.values) for name, trials in row.trials.items()},
                        "diverged": row.trials[section.metrics[0]].num_diverged,
                    }
                    for row in section.rows
                ]
                for section in self.sections
            },
        }  # fmt: skip

    def text(self, command: str) -> str:
        """The whole page, in Markdown."""
        lines = [f"# {self.title}", ""]
        for paragraph in self.description:
            lines += [paragraph, ""]
        for section in self.sections:
            lines += [f"## {section.heading}", "", *section.table(), "", " ".join(section.claims()), ""]
        for note in self.notes:
            lines += [note, ""]
        lines += ["## Curves", "", "Means over the trials that did not diverge.", ""]
        for metric in CURVES:
            lines += [f"![{HEADINGS[metric]}]({self.name}_{metric}.png)", ""]
        return "\n".join([*lines, made_by(command), ""])

    def write(self, folder: Path, store: Store, command: str) -> Path:  # noqa: ARG002 -- as every report
        """The page and its figures, each in one step."""
        folder.mkdir(parents=True, exist_ok=True)
        for metric in CURVES:
            panels = {s.heading: {row.schedule: row.curves[metric] for row in s.rows} for s in self.sections}
            figure = curves_figure(panels, "epoch", HEADINGS[metric], _axis(panels))
            save_figure(figure, folder / f"{self.name}_{metric}.png")
        write_atomically(folder / f"{self.name}.md", self.text(command).encode())
        return folder / f"{self.name}.md"


def rows_of(
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
        trials = {metric: trials_of(settings, outcomes, metric) for metric in HEADINGS}
        curves = {metric: _mean_curve(outcomes, name) for metric, name in CURVES.items()}
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


def winner_text(settings: Mapping[str, Any]) -> str:
    """The searched settings in a few words."""
    shown = [f"lr {settings['lr']:g}"]
    if "min_lr" in settings:
        shown.append("last rate free" if settings["min_lr"] is None else f"last {settings['min_lr']:g}")
    if "intervals" in settings:
        shown.append(f"{settings['intervals']} intervals, factor {settings['factor']:g}")
    for name, letter in (("r", "r"), ("ema_decay", "α"), ("alpha", "α")):
        if name in settings:
            shown.append(f"{letter} {settings[name]:.3g}")
    return ", ".join(shown)


def made_by(command: str) -> str:
    """The last line of a page: command, versions, revision."""
    origin = origin_here()
    versions = ", ".join(f"{name} {number}" for name, number in origin.versions.items())
    return f"Made by `{command}`; {versions}; revision {origin.revision or 'unknown'}."


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as PNG, in one step."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    write_atomically(path, buffer.getvalue())


def _axis(panels: Mapping[str, Mapping[str, Curve]]) -> str:
    """Logarithmic where the numbers span more than a decade."""
    numbers = [number for curves in panels.values() for _, values in curves.values() for number in values]
    return "log" if numbers and min(numbers) > 0 and max(numbers) > 10 * min(numbers) else "linear"


def _mean_curve(outcomes: Sequence[Outcome], name: str) -> Curve:
    found = [outcome.curves[name] for outcome in outcomes if not outcome.diverged]
    if not found:
        return [], []
    factor = 100 if name == "accuracy" else 1
    means = np.mean([[number for _, number in curve] for curve in found], axis=0)
    return [time for time, _ in found[0]], (factor * means).tolist()


def _number(published: str) -> float | None:
    return None if published == "–" else float(published.lstrip("*").split("±")[0])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
