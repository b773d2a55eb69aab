"""Pages of the image experiments: tables, curves, and the sentences that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from paper.engine.claims import best_sentence, paper_sentence
from paper.engine.protocol import Trials
from paper.engine.winners import ReportedMetrics, Winner, settings_text
from paper.figures import curves_figure
from paper.page import ResultsPage, markdown_table

HEADINGS = {"loss": "training loss", "accuracy": "test accuracy (%)", "top5": "top-5 accuracy (%)"}
DIGITS = {"loss": 3, "accuracy": 2, "top5": 2}
REPORTED = ReportedMetrics(tuple(HEADINGS), {"loss": ("train_loss", 1.0), "accuracy": ("accuracy", 100.0)})


class PageTable(Protocol):
    """A section of a page of image experiments."""

    @property
    def heading(self) -> str: ...  # noqa: D102
    @property
    def winners(self) -> Sequence[Winner]: ...  # noqa: D102
    def paragraphs(self) -> list[str]:
        """What the page says in this section, after its heading."""


@dataclass(frozen=True)
class ResultTable:
    """The winners for one network at one budget."""

    heading: str  # heading of the table
    winners: Sequence[Winner]  # winner of each schedule's grid
    published: Mapping[str, Sequence[str]]  # numbers that the paper prints for a schedule, one per metric
    metrics: Sequence[str] = ("loss", "accuracy")  # metrics to show

    def trials(self, metric: str) -> dict[str, Trials]:
        """Trials of one metric, by schedule."""
        return {winner.schedule: winner.trials[metric] for winner in self.winners}

    def markdown(self) -> str:
        """The table, with the paper's numbers next to those measured here."""
        ours = [HEADINGS[metric] for metric in self.metrics]
        paper = [f"paper, full scale: {name}" for name in ours]
        rows = []
        for winner in self.winners:
            numbers = [winner.trials[metric].text(DIGITS[metric]) for metric in self.metrics]
            published = self.published.get(winner.schedule, ["–"] * len(ours))
            rows.append([winner.schedule, *numbers, *published, settings_text(winner.settings), winner.chosen_text(2)])
        return markdown_table(["schedule", *ours, *paper, "winner of the grid", "its validation accuracy (%)"], rows)

    def paragraphs(self) -> list[str]:
        """What the page says about this table, after its heading."""
        return [self.markdown(), " ".join(self.claims())]

    def claims(self) -> list[str]:
        """For each metric, the best schedule, those close to it, and how the paper's best one ranks."""
        sentences = []
        for place, metric in enumerate(self.metrics):
            trials, minimise = self.trials(metric), metric == "loss"
            published = {name: numbers[place] for name, numbers in self.published.items()}
            best = best_sentence(HEADINGS[metric], trials, minimise, partial(Trials.text, digits=DIGITS[metric]))
            sentences += [best, paper_sentence(trials, published, minimise)]
        return [sentence for sentence in sentences if sentence]


def image_page(
    name: str, title: str, description: Sequence[str], tables: Sequence[PageTable], notes: Sequence[str] = ()
) -> ResultsPage:
    """The page of an image experiment: description, a section per table, notes, and training curves."""
    parts = list(description)
    for table in tables:
        parts += [f"## {table.heading}", *table.paragraphs()]
    parts += [*notes, "## Curves", "Means over the trials that did not diverge."]
    figures = {}
    for curve in REPORTED.curves:
        panels = {table.heading: {w.schedule: w.curves[curve] for w in table.winners} for table in tables}
        figures[f"{name}_{curve}.png"] = curves_figure(panels, "epoch", HEADINGS[curve])
        parts.append(f"![{HEADINGS[curve]}]({name}_{curve}.png)")
    values = {"sections": {table.heading: [winner.to_dict() for winner in table.winners] for table in tables}}
    return ResultsPage(name, title, "\n\n".join(parts), figures, values=values)
