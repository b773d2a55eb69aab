"""Published training runs of language models, as CSV files in curves/ below the data folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eigencurve import Schedule, constant, cosine, exponential, linear, piecewise, warmup
from eigencurve.forecast import LoggedRun, load_run
from eigencurve.schedules import join
from paper.data.folder import require_folder

INDEX = "curves/index.json"


@dataclass(frozen=True, eq=False)
class PublishedRun:
    """A published run."""

    model: str  # name of the model in the index
    kind: str  # name of its schedule in the index, such as `"cosine"` or `"lin0.2"`
    split: str  # `"fit"` or `"predict"` if the publication says so, else empty
    peak_lr: float  # peak learning rate
    run: LoggedRun  # the logged losses, with the exact schedule from step 0 on


def published_runs(data: Path | None) -> list[PublishedRun]:
    """All runs of the index, in its order.

    Raises:
        ValueError: There is no data folder, or the index names a schedule that is not known.
        FileNotFoundError: The folder does not hold the index or a log.
    """
    index = require_folder(data, INDEX) / INDEX
    if not index.is_file():
        raise FileNotFoundError(f"{index} is missing. It lists the published training runs.")
    return [_published(entry, index.parent) for entry in json.loads(index.read_text())]


def _published(entry: Mapping[str, Any], folder: Path) -> PublishedRun:
    path = folder / entry["file"]
    run = load_run(path, schedule=described_schedule(entry), name=path.stem)
    return PublishedRun(entry["model"], entry["schedule"], entry.get("split", ""), entry["peak_lr"], run)


def described_schedule(entry: Mapping[str, Any]) -> Schedule:
    """The schedule that an entry of the index describes, including its linear warmup.

    >>> entry = {"schedule": "lin0.5", "total_steps": 8, "warmup_steps": 1, "peak_lr": 1.0}
    >>> described_schedule(entry).values()
    array([0.5 , 1.  , 1.  , 1.  , 1.  , 0.75, 0.5 , 0.25])
    """
    kind, total, rise, peak = entry["schedule"], entry["total_steps"], entry["warmup_steps"], entry["peak_lr"]
    if kind in ("constant", "stable"):
        body: Schedule = constant(total - rise, peak)
    elif kind in ("cosine", "cos0", "cos10"):
        lowest = {"cos0": 0.0, "cos10": 0.1 * peak}
        body = cosine(total - rise, peak, lowest[kind] if kind in lowest else entry["final_lr"])
    elif "change_at" in entry:
        body = join([constant(entry["change_at"] - rise, peak), _tail(entry)])
    elif kind[:3] in ("lin", "sqr"):
        last = round(float(kind[3:]) * total)
        tail = linear(last, peak) if kind[:3] == "lin" else _one_minus_sqrt(last, peak)
        body = join([constant(total - rise - last, peak), tail])
    else:
        body = _unknown(entry)
    return warmup(body, rise) if rise else body


def _tail(entry: Mapping[str, Any]) -> Schedule:
    """What follows the constant rate, from ``change_at`` on."""
    steps, peak, final = entry["total_steps"] - entry["change_at"], entry["peak_lr"], entry["final_lr"]
    match entry["schedule"]:
        case "two constants":
            return constant(steps, final)
        case "constant, then linear":
            return linear(steps, peak, final)
        case "constant, then exponential":
            return exponential(steps, peak, final)
    return _unknown(entry)


def _unknown(entry: Mapping[str, Any]) -> Schedule:
    raise ValueError(f"{INDEX}: the schedule {entry['schedule']!r} of {entry.get('file', 'a run')} is not known.")


def _one_minus_sqrt(total_steps: int, peak_lr: float) -> Schedule:
    """The decay 1 - √(t/T)."""
    steps = np.arange(total_steps, dtype=np.float64)
    return piecewise(total_steps, steps, peak_lr * (1 - np.sqrt(steps / total_steps)))
