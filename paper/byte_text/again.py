"""A second test of forecasts on the transformer: fitted to the logs of the first one, tested on other schedules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from eigencurve.forecast import Forecast, LoggedRun, fit_runs, load_run
from paper import checks
from paper.byte_text.predictions import Predictions, committed_predictions, final_loss, predict
from paper.byte_text.report import (
    DIGITS,
    ByteRow,
    CheckedLoss,
    checked_sentences,
    checked_table,
    file_name,
    losses_table,
    missing_sentence,
    prediction_paragraphs,
)
from paper.byte_text.scales import (
    AGAIN,
    FIRST,
    RECOMMENDATION,
    REST,
    SCALES,
    ByteScale,
    grids,
    recommended_grid,
    shapes,
)
from paper.byte_text.tables import ByteSetup, find_text
from paper.engine.request import Request
from paper.page import ResultsPage, markdown_table

NAME = "bytes-again"
FILE = Path(__file__).with_name("again.json")
LOG = re.compile(r"(.+)_lr([^_]+)_seed\d+")
# Logs that people may have, by the names of their files.
SUBSETS = (
    ("constant",),
    ("cosine-to-0",),
    ("cosine-to-0", "linear"),
    ("constant", "cosine-to-0"),
    ("constant", "wsd-linear-20"),
    ("cosine-to-0", "wsd-linear-20"),
    ("constant", "cosine-to-0", "wsd-linear-20"),
)
SUBSETS_ABOUT = (
    "Fits to some of the logs at one rate, and their forecasts of all other runs of the first test at that rate. Each"
    " cell: mean absolute error of the final losses, and how many are inside their 80 % interval. Runs that decay in"
    " about the same way are not enough, and `warnings` of the forecast says so."
)
AFTERWARDS = (
    "What the same fit says about the runs that the first test held back. Forecasts were changed when these outcomes"
    " were known, so this is no test."
)
Logs = Mapping[tuple[str, float], LoggedRun]


def make(request: Request) -> ResultsPage:
    """Predict the losses of new schedules from the logs of the first test; train them once that is committed.

    Without committed predictions, the page comes with a file of them and nothing is trained.
    """
    scale = request.scale_of(SCALES)
    logs = read_logs(request.data)
    first = {file_name(name) for name in shapes(FIRST, "")}
    forecast = fit_runs([run for (name, _), run in logs.items() if name in first])
    new_grids, predictions = grids(scale, AGAIN), committed_predictions(scale.name, FILE)
    if predictions is None:
        return _page(scale, logs, forecast, (), None, predict(forecast, new_grids, scale, {}, _made_by(logs, first)))
    new_grids[RECOMMENDATION] = recommended_grid(scale, predictions.recommended)
    setup = ByteSetup(find_text(None), scale, request)
    if request.part != "finished":
        setup.train(new_grids, {})
    return _page(scale, logs, forecast, setup.rows(AGAIN, new_grids), predictions)


def read_logs(folder: Path | None) -> dict[tuple[str, float], LoggedRun]:
    """The mean over the seeds of the logs that the first test wrote, by name of the schedule and peak rate.

    Raises:
        ValueError: There is no folder, or it has no such logs.
    """
    logs: dict[tuple[str, float], list[LoggedRun]] = {}
    for path in [] if folder is None else sorted(folder.glob("*.csv")):
        if parts := LOG.fullmatch(path.stem):
            logs.setdefault((parts[1], float(parts[2])), []).append(load_run(path))
    if not logs:
        remedy = "Pass --data with the logs of `python -m paper bytes`, such as results/bytes_curves."
        checks.refuse("paper", "data", "a folder of logs", None if folder is None else str(folder), remedy)
    return {key: _mean(f"{key[0]}, lr {key[1]:g}", runs) for key, runs in logs.items()}


def checked_again(logs: Logs, forecast: Forecast) -> list[CheckedLoss]:
    """The losses of the first test that ``forecast`` was not fitted to, and what it would have predicted."""
    names = {file_name(name): name for name in (*shapes(REST, ""), RECOMMENDATION)}
    return [_checked(forecast, names[key[0]], key[1], run) for key, run in sorted(logs.items()) if key[0] in names]


def _checked(forecast: Forecast, name: str, rate: float, run: LoggedRun) -> CheckedLoss:
    outcome = float(run.losses[-1])
    return CheckedLoss(name, rate, final_loss(forecast, run.schedule), outcome, f"{outcome:.{DIGITS}f}")


def subsets_table(logs: Logs) -> str:
    """How good forecasts from some of the logs at one rate are, for all other logs at that rate."""
    rates = sorted({rate for _, rate in logs})
    logged = [names for names in SUBSETS if all((name, rate) in logs for name in names for rate in rates)]
    rows = [[", ".join(names), *(_subset_cell(logs, names, rate) for rate in rates)] for names in logged]
    return markdown_table(["fitted", *(f"lr {rate:g}" for rate in rates)], rows)


def _subset_cell(logs: Logs, names: Sequence[str], rate: float) -> str:
    forecast = fit_runs([logs[name, rate] for name in names])
    held = {name: run for (name, at), run in logs.items() if at == rate and name not in names}
    ends = [_checked(forecast, name, rate, run) for name, run in held.items()]
    error = np.mean([abs(one.error) for one in ends])
    return f"{error:.{DIGITS}f}, {sum(one.is_inside for one in ends)} of {len(ends)}"


def _mean(name: str, runs: Sequence[LoggedRun]) -> LoggedRun:
    losses = np.mean([run.losses for run in runs], axis=0)
    return LoggedRun(runs[0].steps, losses, runs[0].schedule, name, runs[0].metric)


def _made_by(logs: Logs, first: set[str]) -> str:
    count = sum(name in first for name, _ in logs)
    return f"`fit_runs` on the logs of the first test: {count} schedules and rates, each the mean over its seeds"


def _page(
    scale: ByteScale, logs: Logs, forecast: Forecast, rows: Sequence[ByteRow], predictions: Predictions | None,
    new: Predictions | None = None,
) -> ResultsPage:  # fmt: skip
    old = checked_again(logs, forecast)
    parts = [
        f"Scale: {scale.name}. The [first test](bytes.md) of forecasts fitted one model to runs at {len(scale.rates)}"
        " peak rates. Forecasts now use only the runs at the peak rate that they are about. This page tests such a"
        " forecast: it is fitted to the same logs, and tested on schedules that the first test did not have. Its"
        " predictions are committed before these are trained. The network, the training and the seeds are those of the"
        " first test.",
        "## Predictions and outcomes",
        *prediction_paragraphs(rows, predictions),
        missing_sentence(rows),
        *(["## Losses", losses_table(rows)] if rows else []),
        *(["## The first test, after the fact", AFTERWARDS, checked_table(old), checked_sentences(old)] if old else []),
        "## Which logs are enough",
        SUBSETS_ABOUT,
        subsets_table(logs),
    ]
    body = "\n\n".join(part for part in parts if part)
    files = {} if new is None else {"bytes_again.json": new.file(scale.name)}
    title = "A second forecast of the byte-level transformer"
    return ResultsPage(NAME, title, body, files=files)
