"""The page of the language experiment, made from the rows of a store alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigencurve._files import write_atomically
from eigencurve.experiments.data.ptb import Corpus
from eigencurve.experiments.engine.winners import Row, Shown, standard_errors
from eigencurve.experiments.language.scales import BASELINE_EPOCHS, BASELINE_HOLD, LanguageScale
from eigencurve.experiments.models.lstm import WIDTH
from eigencurve.experiments.page import made_by, save_figure, winner_text
from eigencurve.figures.curves import curves_figure
from eigencurve.runs.store import Store

# arXiv:2110.14109, Table "Scheduler performance on LSTM + Penn Treebank over 5 trials": validation, test.
PAPER = {
    "Inverse Time Decay": ("114.9 ± 1.1", "112.7 ± 1.1"),
    "General Step Decay": ("82.4 ± 0.1", "79.1 ± 0.2"),
    "Baseline": ("82.2", "78.4"),
    "Cosine Decay": ("82.4 ± 0.4", "78.5 ± 0.4"),
    "Elastic Step Decay": ("81.1 ± 0.2", "77.4 ± 0.3"),
}
PAPER_WINNER = "Elastic Step Decay"
DISCLOSED = (
    "The initial rates to try, the same for every schedule (0.5, 0.35 and 0.25), were set after five runs of the"
    " baseline alone with a somewhat larger network (rates 2 to 0.1), ten runs of a first search (rates 1, 0.5, 0.25),"
    " and two whole tables with higher rates: 1, 0.7 and 0.5 with one selection seed, then 0.7, 0.5 and 0.35 with two."
    " In both most winners had 0.7, at which some seeds never leave a plateau: hence the lower rates."
)
METRICS = {"train": "training", "valid": "validation", "test": "test"}
SHOWN = Shown(tuple(METRICS), {metric: (metric, 1.0) for metric in METRICS})


@dataclass(frozen=True)
class LanguageReport:
    """The page: rows, and what they were made with."""

    corpus: Corpus
    scale: LanguageScale
    rows: Sequence[Row]
    fresh_seeds: Sequence[int]

    def table(self) -> list[str]:
        """A Markdown table, the paper's numbers beside ours."""
        lines = [
            "| schedule | validation | test | training | the paper's, full scale: validation | test |"
            " winner of the grid | its validation perplexity |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        for row in self.rows:
            ours = [row.trials[metric].text(1) for metric in ("valid", "test", "train")]
            chosen = "–" if row.chosen is None else f"{row.chosen:.1f} (best of {row.num_tried})"
            cells = [row.schedule, *ours, *PAPER[row.schedule], _winner(row.settings), chosen]
            lines.append("| " + " | ".join(cells) + " |")
        return lines

    def claims(self) -> list[str]:
        """What the trials say: the best on the test text, what is close to it, and where the paper's winner is."""
        ranked = sorted(
            (row for row in self.rows if row.trials["test"].mean is not None),
            key=lambda r: r.trials["test"].mean or 0.0,
        )
        if not ranked:
            return ["Every trial diverged."]
        best = ranked[0].trials["test"]
        close = [row.schedule for row in ranked[1:] if standard_errors(best, row.trials["test"]) < 2]
        near = f"Within two standard errors of it: {', '.join(close)}." if close else "No other is within two errors."
        lines = [f"On the test text {ranked[0].schedule} is best: {best.text(1)}. {near}"]
        return lines + self._beside_paper(ranked)

    def _beside_paper(self, ranked: Sequence[Row]) -> list[str]:
        names = [row.schedule for row in ranked]
        if names[0] == PAPER_WINNER:
            return ["So it is in the paper."]
        if PAPER_WINNER not in names:
            return [f"The paper's winner, {PAPER_WINNER}, diverged here."]
        place = names.index(PAPER_WINNER)
        gap = standard_errors(ranked[0].trials["test"], ranked[place].trials["test"])
        return [
            f"In the paper {PAPER_WINNER} is best; here it is number {place + 1} of {len(names)}, {gap:.1f} standard"
            f" errors behind {names[0]}."
        ]

    def description(self) -> list[str]:
        """Text, network, training and protocol, in paragraphs."""
        corpus, scale = self.corpus, self.scale
        words = (
            f"{len(corpus.train):,} words to learn from, {len(corpus.valid):,} to choose by, {len(corpus.test):,} to"
        )
        texts = f"{words} report on, a vocabulary of {len(corpus.vocabulary):,}."
        if not scale.full_text:
            texts += (
                " **This is not the paper's experiment**: its training text is not here, so the network learns from the"
                " first nine tenths of the *validation* text, settings are chosen by the last tenth, and the test text"
                f" is reported. Words that come fewer than {scale.least} times in what it learns from are <unk>, in all"
                " three texts. Perplexities are for comparing schedules with each other, not with the paper's."
            )
        held = round(scale.epochs * BASELINE_HOLD / BASELINE_EPOCHS)
        searched = "over the paper's grids" if scale.full_grids else "among four tries for every schedule"
        return [
            f"Scale: {scale.name}. {corpus.name}: {texts}",
            f"An LSTM of 2 layers of {WIDTH // scale.divisor:,}, dropout {scale.dropout:g} on non-recurrent"
            f" connections, weights from ±{scale.initial:g}; SGD without momentum, batch size {scale.batch_size},"
            f" {scale.unroll} steps unrolled, the state carried on, gradients scaled down to norm {scale.max_norm:g},"
            f" {scale.epochs} epochs. The loss that is differentiated is the sum over the unrolled words of the mean"
            " over the batch, as in Zaremba et al. (arXiv:1409.2329): rates belong to that. The baseline holds its rate"
            f" for {held} of {scale.epochs} epochs (the paper: {BASELINE_HOLD} of {BASELINE_EPOCHS}) and then divides"
            " it after each, by the paper's 1.15"
            + ("." if scale.full_grids else " or by the factor that leads to the paper's last rate."),
            f"Settings are chosen by the validation perplexity with {_seeds(scale.selection_seeds)} {searched}; numbers"
            f" are mean ± standard deviation of the winner's trials with seeds {min(self.fresh_seeds)} …"
            f" {max(self.fresh_seeds)}, after the last epoch (training: over the last epoch, with dropout). A star"
            " marks rows with a trial that diverged: a loss that is not finite, or a perplexity above the number of"
            " words." + ("" if scale.full_grids else f" {DISCLOSED}"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        rows = [
            {
                "schedule": row.schedule, "settings": dict(row.settings), "chosen": row.chosen,
                "trials": {name: list(trials.values) for name, trials in row.trials.items()},
                "diverged": row.trials["valid"].num_diverged,
            }
            for row in self.rows
        ]  # fmt: skip
        return {"table": "language", "scale": self.scale.name, "corpus": self.corpus.name, "rows": rows}

    def text(self, command: str) -> str:
        """The whole page, in Markdown."""
        lines = ["# An LSTM on the Penn Treebank under five schedules", ""]
        for paragraph in self.description():
            lines += [paragraph, ""]
        lines += ["## Perplexities", "", *self.table(), "", " ".join(self.claims()), ""]
        lines += ["## Curves", "", "Means over the trials that did not diverge.", "", "![curves](language.png)", ""]
        return "\n".join([*lines, made_by(command), ""])

    def write(self, folder: Path, store: Store, command: str) -> Path:  # noqa: ARG002 -- as every report
        """``language.md`` and its figure, each in one step."""
        folder.mkdir(parents=True, exist_ok=True)
        panels = {
            f"{title} perplexity": {row.schedule: row.curves[metric] for row in self.rows}
            for metric, title in METRICS.items()
            if metric != "test"
        }
        save_figure(curves_figure(panels, "epoch", "perplexity"), folder / "language.png")
        write_atomically(folder / "language.md", self.text(command).encode())
        return folder / "language.md"


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))} (the mean of them)"


def _winner(settings: Mapping[str, Any]) -> str:
    held = settings["schedule"] == "hold_then_decay"
    return winner_text(settings) + (f", divided by {settings['factor']:.3g} an epoch" if held else "")
