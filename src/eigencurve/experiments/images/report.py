"""Pages of the image experiments: tables, curves and what follows from them, made from the rows of a store alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigencurve._files import write_atomically
from eigencurve.experiments.engine.winners import Row, Shown, standard_errors
from eigencurve.experiments.page import made_by, save_figure, winner_text
from eigencurve.figures.curves import curves_figure
from eigencurve.runs.store import Store

HEADINGS = {"loss": "training loss", "accuracy": "test accuracy (%)", "top5": "top-5 accuracy (%)"}
DIGITS = {"loss": 3, "accuracy": 2, "top5": 2}
CURVES = {"loss": ("train_loss", 1.0), "accuracy": ("accuracy", 100.0)}
SHOWN = Shown(tuple(HEADINGS), CURVES)


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
            chosen = "–" if row.chosen is None else f"{row.chosen:.2f} (best of {row.num_tried})"
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
                        "schedule": row.schedule, "settings": dict(row.settings), "validation": row.chosen,
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
            figure = curves_figure(panels, "epoch", HEADINGS[metric])
            save_figure(figure, folder / f"{self.name}_{metric}.png")
        write_atomically(folder / f"{self.name}.md", self.text(command).encode())
        return folder / f"{self.name}.md"


def _number(published: str) -> float | None:
    return None if published == "–" else float(published.lstrip("*").split("±")[0])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
