"""The page of the language experiment: which texts and runs it needs, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from paper.data.folder import require_folder
from paper.data.ptb import Corpus, load_ptb, load_small_ptb
from paper.engine.claims import best_sentence, paper_sentence
from paper.engine.protocol import Settings, Trials
from paper.engine.request import Request
from paper.engine.winners import GridSearch, ReportedMetrics, Winner, settings_text
from paper.figures import curves_figure
from paper.language.experiment import language_experiment
from paper.language.scales import BASELINE_EPOCHS, BASELINE_HOLD, SCALES, LanguageScale, grids
from paper.models.lstm import WIDTH
from paper.page import ResultsPage, markdown_table, published_numbers

# Validation and test perplexities that the paper prints, by schedule.
PUBLISHED_PERPLEXITIES = published_numbers("language")
# What was tried before, so that a reader knows how the searched rates were chosen.
RATES_NOTE = (
    "The initial rates 0.5, 0.35 and 0.25, the same for every schedule, were chosen after preliminary runs: five of the"
    " baseline with a somewhat larger network (rates 2 to 0.1), ten of a first search (rates 1, 0.5, 0.25), and two"
    " whole tables with higher rates: 1, 0.7 and 0.5 with one selection seed, then 0.7, 0.5 and 0.35 with two. In both"
    " tables most winners had 0.7, at which some seeds never leave a plateau."
)
METRICS = {"train": "training", "valid": "validation", "test": "test"}
REPORTED = ReportedMetrics(tuple(METRICS), {metric: (metric, 1.0) for metric in METRICS})


def language_page(
    corpus: Corpus, scale: LanguageScale, winners: Sequence[Winner], fresh_seeds: Sequence[int]
) -> ResultsPage:
    """The page of the language experiment."""
    trials = {winner.schedule: winner.trials["test"] for winner in winners}
    published = {name: test for name, (_, test) in PUBLISHED_PERPLEXITIES.items()}
    best = best_sentence("test perplexity", trials, minimise=True, number=partial(Trials.text, digits=1))
    parts = [
        *_description(corpus, scale, fresh_seeds), "## Perplexities", _table(winners),
        f"{best} {paper_sentence(trials, published, minimise=True)}", "## Curves",
        "Means over the trials that did not diverge.", "![curves](language.png)",
    ]  # fmt: skip
    panels = {
        f"{title} perplexity": {winner.schedule: winner.curves[metric] for winner in winners}
        for metric, title in METRICS.items()
        if metric != "test"
    }
    values = {"scale": scale.name, "corpus": corpus.name, "rows": [winner.to_dict() for winner in winners]}
    figures = {"language.png": curves_figure(panels, "epoch", "perplexity")}
    title = "An LSTM on the Penn Treebank under five schedules"
    return ResultsPage("language", title, "\n\n".join(parts), figures, values=values)


def _table(winners: Sequence[Winner]) -> str:
    columns = [
        "schedule", "validation", "test", "training", "paper, full scale: validation", "paper, full scale: test",
        "winner of the grid", "its validation perplexity",
    ]  # fmt: skip
    rows = []
    for winner in winners:
        ours = [winner.trials[metric].text(1) for metric in ("valid", "test", "train")]
        published = PUBLISHED_PERPLEXITIES[winner.schedule]
        rows.append([winner.schedule, *ours, *published, _winner_text(winner.settings), winner.chosen_text(1)])
    return markdown_table(columns, rows)


def _description(corpus: Corpus, scale: LanguageScale, fresh_seeds: Sequence[int]) -> list[str]:
    """Paragraphs about text, network, training and protocol."""
    texts = (
        f"{len(corpus.train):,} words to learn from, {len(corpus.valid):,} to choose settings, {len(corpus.test):,} to"
        f" report on; a vocabulary of {len(corpus.vocabulary):,} words."
    )
    if not scale.full_text:
        texts += (
            " **This is not the paper's experiment**: without its training text, the network learns from the first nine"
            " tenths of the *validation* text, settings are chosen on the last tenth, and the test text is reported."
            f" Words that occur fewer than {scale.least} times in the text it learns from are <unk> in all three texts."
            " Compare the perplexities with each other, not with the paper's."
        )
    held = round(scale.epochs * BASELINE_HOLD / BASELINE_EPOCHS)
    searched = "over the paper's grids" if scale.full_grids else "among four tries for every schedule"
    factor = "." if scale.full_grids else " or by the factor that leads to the paper's last rate."
    return [
        f"Scale: {scale.name}. {corpus.name}: {texts}",
        f"An LSTM with 2 layers of {WIDTH // scale.divisor:,} units, dropout {scale.dropout:g} on non-recurrent"
        f" connections, and initial weights in ±{scale.initial:g}. SGD without momentum, batch size"
        f" {scale.batch_size}, {scale.unroll} steps unrolled with the state carried over, gradients clipped to norm"
        f" {scale.max_norm:g}, {scale.epochs} epochs. As in Zaremba et al. (arXiv:1409.2329), the loss is the sum over"
        " the unrolled words of the mean over the batch; the learning rates refer to this sum. The baseline holds its"
        f" rate for {held} of {scale.epochs} epochs (in the paper: {BASELINE_HOLD} of {BASELINE_EPOCHS}) and then"
        f" divides it after each epoch by the paper's 1.15{factor}",
        f"Settings are chosen by the validation perplexity with {_seeds_text(scale.selection_seeds)} {searched}. The"
        f" table shows mean ± standard deviation of the winner's trials with seeds {min(fresh_seeds)} …"
        f" {max(fresh_seeds)} after the last epoch (training: over the last epoch, with dropout). A star means that a"
        " trial diverged: its loss was not finite, or its perplexity exceeded the number of words."
        + ("" if scale.full_grids else f" {RATES_NOTE}"),
    ]


def _seeds_text(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))} (their mean)"


def _winner_text(settings: Settings) -> str:
    held = settings["schedule"] == "hold_then_decay"
    return settings_text(settings) + (f", divided by {settings['factor']:.3g} per epoch" if held else "")


def make(request: Request) -> ResultsPage:
    """Five schedules, each with its grid, and trials of the winners."""
    scale = request.scale_of(SCALES)
    corpus = find_corpus(request.data, scale)
    experiment = language_experiment(corpus, request.checkpoints)
    fresh = range(1, scale.num_trials + 1)
    winners = GridSearch(experiment, grids(scale), scale.selection_seeds, fresh, request, REPORTED).winners()
    return language_page(corpus, scale, winners, fresh)


def find_corpus(data: Path | None, scale: LanguageScale) -> Corpus:
    """The texts in ``data``, or in ptb/ below the data folder."""
    folder = data or require_folder(None, "ptb/ with the Penn Treebank's ptb.*.txt") / "ptb"
    return load_ptb(folder) if scale.full_text else load_small_ptb(folder, scale.least)
