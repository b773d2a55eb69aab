"""The page of the transformer: losses by schedule and rate, differences seed by seed, predictions and outcomes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from eigencurve.runs import Outcome
from paper.byte_text.predictions import PredictedLoss, Predictions
from paper.byte_text.scales import COSINE, FIRST, ByteScale
from paper.data.ptb import ByteText
from paper.engine.claims import best_sentence
from paper.engine.pairing import differences_table, paired_differences, seeds_sentence, together_sentence
from paper.engine.protocol import Trials
from paper.engine.winners import mean_curve
from paper.figures import curves_figure
from paper.page import ResultsPage, markdown_table
from paper.training.settings import PRECISION_WORDS

METRICS = ("valid", "test", "train")
RESOLVED = 0.005  # nats per byte
DIGITS = 4
NAME = "bytes"


@dataclass(frozen=True, eq=False)
class RateTrials:
    """The runs of one schedule at one peak rate."""

    trials: Mapping[str, Trials]  # trials by metric
    outcomes: Mapping[int, Outcome]  # finished runs by seed
    num_missing: int  # number of seeds that are not finished

    @property
    def loss(self) -> float | None:
        """Mean validation loss, if all seeds are finished and none diverged."""
        valid = self.trials["valid"]
        return None if self.num_missing or valid.num_diverged else valid.mean

    def text(self, metric: str) -> str:
        """Mean ± deviation; what is not finished is said."""
        if not self.outcomes:
            return "not finished"
        partly = f" ({len(self.outcomes)} of {len(self.outcomes) + self.num_missing} seeds)" if self.num_missing else ""
        return self.trials[metric].text(DIGITS) + partly


@dataclass(frozen=True, eq=False)
class ByteRow:
    """One schedule at all peak rates."""

    part: str  # part of the runs that it belongs to
    schedule: str  # name of the schedule
    rates: Mapping[float, RateTrials]  # its runs by peak rate

    @property
    def best_rate(self) -> float | None:
        """The rate with the lowest validation loss; None until all rates are finished or if all diverged."""
        losses = {rate: found.loss for rate, found in self.rates.items()}
        known = {rate: loss for rate, loss in losses.items() if loss is not None}
        unfinished = any(found.num_missing for found in self.rates.values())
        return None if unfinished or not known else min(known, key=lambda rate: known[rate])

    @property
    def num_missing(self) -> int:
        """Number of runs that are not finished."""
        return sum(found.num_missing for found in self.rates.values())

    def best(self, metric: str) -> Trials | None:
        """Trials at the best rate."""
        return None if self.best_rate is None else self.rates[self.best_rate].trials[metric]


def byte_page(
    text: ByteText, scale: ByteScale, rows: Sequence[ByteRow], predictions: Predictions | None,
    new: Predictions | None = None,
) -> ResultsPage:  # fmt: skip
    """The page of the transformer, with committed predictions next to the outcomes, and a file of ``new`` ones."""
    parts = [*_description(text, scale), missing_sentence(rows), "## Losses", losses_table(rows)]
    known = {row.schedule: trials for row in rows if (trials := row.best("test")) is not None}
    if known:
        parts.append(best_sentence("test loss", known, minimise=True, number=lambda t: t.text(DIGITS)))
    differences = paired_differences(known, COSINE)
    if differences:
        parts += [
            f"## Differences from {COSINE}, seed by seed",
            differences_table(differences, DIGITS, "better", "worse"),
        ]
        parts.append(seeds_sentence(differences, RESOLVED, DIGITS, "nats per byte"))
        parts.append(together_sentence(known, COSINE, minimise=True, digits=DIGITS, unit="nats per byte"))
    parts += ["## Predictions and outcomes", *prediction_paragraphs(rows, predictions)]
    further = {} if new is None else {f"{NAME}_predictions.json": new.file(scale.name)}
    figures = {}
    if known:
        first = scale.total_steps // 4  # earlier losses are so high that later differences would not be seen
        figures[f"{NAME}.png"] = curves_figure(_panels(rows, first), "step", "validation loss (nats per byte)")
        shown = f"Means over the seeds, at the best rate of each schedule, after step {first:,}."
        parts += ["## Curves", shown, f"![curves]({NAME}.png)"]
    values = {"scale": scale.name, "text": text.name, "rows": [_values(row) for row in rows]}
    title = "A byte-level transformer under AdamW and many schedules"
    body = "\n\n".join(part for part in parts if part)
    return ResultsPage(NAME, title, body, figures, curve_files(rows) | further, values)


def losses_table(rows: Sequence[ByteRow]) -> str:
    """Validation loss at every rate, and the test loss at the best."""
    rates = sorted({rate for row in rows for rate in row.rates})
    columns = ["schedule", "runs", *(f"validation, lr {rate:g}" for rate in rates), "best lr", "test loss there"]
    lines = []
    for row in rows:
        best = row.best_rate
        last = ["–", "–"] if best is None else [f"{best:g}", row.rates[best].text("test")]
        lines.append([row.schedule, row.part, *(row.rates[rate].text("valid") for rate in rates), *last])
    return markdown_table(columns, lines)


def missing_sentence(rows: Sequence[ByteRow]) -> str:
    """What is not finished; empty if everything is."""
    missing = {row.schedule: row.num_missing for row in rows if row.num_missing}
    words = [f"{name} ({count} run{'s' if count != 1 else ''})" for name, count in missing.items()]
    return f"**Not finished:** {'; '.join(words)}." if words else ""


@dataclass(frozen=True)
class CheckedLoss:
    """A predicted final loss, and what became of it."""

    schedule: str  # name of the schedule
    rate: float  # peak rate
    predicted: PredictedLoss  # the prediction
    outcome: float | None  # mean loss of the runs; None if they are not finished
    text: str  # the outcome in a table

    @property
    def error(self) -> float:
        """Prediction minus outcome; not a number if the runs are not finished."""
        return math.nan if self.outcome is None else self.predicted.loss - self.outcome

    @property
    def is_inside(self) -> bool:
        """Whether the outcome is inside the interval."""
        return self.outcome is not None and self.predicted.low <= self.outcome <= self.predicted.high


def prediction_paragraphs(rows: Sequence[ByteRow], predictions: Predictions | None) -> list[str]:
    """Committed predictions next to the outcomes."""
    if predictions is None:
        return ["No predictions are committed yet."]
    checked = checked_rows(rows, predictions)
    about = f"Final validation losses, predicted by {predictions.made_by}."
    summary = f"{checked_sentences(checked)} {tails_sentence(rows, predictions)}"
    return [about, checked_table(checked), summary.strip()]


def checked_rows(rows: Sequence[ByteRow], predictions: Predictions) -> list[CheckedLoss]:
    """The predictions for the schedules of ``rows``, and their outcomes."""
    found = []
    for row in rows:
        for rate, predicted in sorted(predictions.losses.get(row.schedule, {}).items()):
            runs = row.rates.get(rate)
            loss, text = (None, "not finished") if runs is None else (runs.loss, runs.text("valid"))
            found.append(CheckedLoss(row.schedule, rate, predicted, loss, text))
    return found


def checked_table(checked: Sequence[CheckedLoss]) -> str:
    """Predictions and outcomes side by side."""
    lines = []
    for one in checked:
        error = "–" if one.outcome is None else f"{one.error:+.{DIGITS}f}"
        interval = f"{one.predicted.low:.{DIGITS}f} … {one.predicted.high:.{DIGITS}f}"
        lines.append([one.schedule, f"{one.rate:g}", f"{one.predicted.loss:.{DIGITS}f}", interval, one.text, error])
    columns = ["schedule", "lr", "predicted", "80 % interval", "outcome", "prediction minus outcome"]
    return markdown_table(columns, lines)


def checked_sentences(checked: Sequence[CheckedLoss]) -> str:
    """How good the predictions are, and how well they rank the schedules; empty if no runs are finished."""
    known = [one for one in checked if one.outcome is not None]
    if not known:
        return ""
    typical = statistics.fmean(abs(one.error) for one in known)
    errors = (
        f"Mean absolute error over {len(known)} schedules and rates: {typical:.{DIGITS}f} nats per byte; mean error:"
        f" {statistics.fmean(one.error for one in known):+.{DIGITS}f}. {sum(one.is_inside for one in known)} of"
        f" {len(known)} outcomes are inside their interval."
    )
    return f"{errors} {ranks_sentence(known)}".strip()


def ranks_sentence(checked: Sequence[CheckedLoss]) -> str:
    """How well predictions rank the schedules at each rate; empty if no rate has three finished schedules."""
    words = []
    for rate in sorted({one.rate for one in checked}):
        pairs = [(one.predicted.loss, one.outcome) for one in checked if one.rate == rate and one.outcome is not None]
        if len(pairs) > 2:
            words.append(f"{stats.spearmanr(*zip(*pairs, strict=True)).statistic:.2f} at {rate:g}")
    found = f"Rank correlation of prediction and outcome over the schedules: {', '.join(words)}."
    return found if words else ""


def tails_sentence(rows: Sequence[ByteRow], predictions: Predictions) -> str:
    """How far a guess without a model is off: a 1-sqrt tail ends like the logged linear tail of the same length."""
    losses = {(row.schedule, rate): found.loss for row in rows for rate, found in row.rates.items()}
    guesses, forecasts = [], []
    for (name, rate), outcome in losses.items():
        guess = losses.get((name.replace("1-sqrt", "linear"), rate))
        if "1-sqrt" in name and outcome is not None and guess is not None:
            guesses.append(abs(guess - outcome))
            forecasts.append(abs(predictions.losses[name][rate].loss - outcome))
    if not guesses:
        return ""
    return (
        f"For the {len(guesses)} 1-sqrt tails, the logged loss of the linear tail of the same length and rate, taken as"
        f" the prediction, has a mean absolute error of {statistics.fmean(guesses):.{DIGITS}f}; the forecast has"
        f" {statistics.fmean(forecasts):.{DIGITS}f}."
    )


def curve_files(rows: Sequence[ByteRow]) -> dict[str, bytes]:
    """The validation loss of every finished run, as ``step,lr,loss`` in a CSV file per run.

    The loss of a row is that after ``step`` updates, and its rate is that of the last of them.
    """
    found = {}
    for row in rows:
        for rate, runs in row.rates.items():
            for seed, outcome in runs.outcomes.items():
                used = [lr for _, lr in outcome.curves["lr"]]
                lines = [f"{s:.0f},{used[int(s) - 1]:.8g},{loss:.6f}" for s, loss in outcome.curves["valid_loss"]]
                name = f"{file_name(row.schedule)}_lr{rate:g}_seed{seed}.csv"
                found[f"{NAME}_curves/{name}"] = ("\n".join(["step,lr,loss", *lines]) + "\n").encode()
    return found


def file_name(schedule: str) -> str:
    """The name of a schedule in the names of files.

    >>> file_name("WSD, linear 40%")
    'wsd-linear-40'
    """
    return schedule.lower().replace(",", "").replace("%", "").replace(" ", "-")


def _panels(rows: Sequence[ByteRow], first: int) -> dict[str, dict[str, tuple[list[float], list[float]]]]:
    panels: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for row in rows:
        if row.best_rate is not None:
            title = "fitted by the forecast" if row.part == FIRST else "held back"
            runs = list(row.rates[row.best_rate].outcomes.values())
            steps, losses = mean_curve(runs, "valid_loss")
            late = [(step, loss) for step, loss in zip(steps, losses, strict=True) if step > first]
            panels.setdefault(title, {})[row.schedule] = ([step for step, _ in late], [loss for _, loss in late])
    return panels


def _values(row: ByteRow) -> dict[str, object]:
    rates = {f"{rate:g}": {m: list(found.trials[m].values) for m in METRICS} for rate, found in row.rates.items()}
    return {"schedule": row.schedule, "part": row.part, "rates": rates, "missing": row.num_missing}


def _description(text: ByteText, scale: ByteScale) -> list[str]:
    return [
        f"Scale: {scale.name}. A transformer with 3 blocks predicts the next byte; context {scale.context}. It learns"
        f" from the *validation* text of the Penn Treebank ({len(text.train):,} bytes), because the training text is"
        f" not free, and is measured on the test text: {scale.num_valid} windows during training (validation), all"
        " others at the end (test). Losses are in nats per byte.",
        f"AdamW, β = {scale.betas[0]:g}, {scale.betas[1]:g}, decoupled weight decay {scale.weight_decay:g}, gradients"
        f" clipped to norm {scale.max_norm:g}, {PRECISION_WORDS[scale.precision]},"
        f" batches of {scale.batch_size} windows, {scale.total_steps:,} steps with"
        f" {scale.warmup_steps} of warmup. Every schedule has {len(scale.rates)} peak rates and {scale.num_seeds}"
        " seeds; the table shows mean ± standard deviation. Eigencurve uses the spectrum of the Hessian preconditioned"
        f" by AdamW at the end of a run of cosine decay at {scale.rates[0]:g}. A star means that a run diverged.",
        "The runs come in two parts. A forecast is fitted to the first part; its predictions for the rest are committed"
        " before the rest is trained.",
    ]
