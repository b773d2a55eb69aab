"""The tables: every finished run of a task in one compact file, found by its schedule and its seed.

A file holds one row per run: the schedule as text, the seed, the final losses with and without weight averages, and
curves of 64 points. A decision that names a new schedule adds a row; nothing that is in the table is trained again.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from math import floor, log10
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.decisions.tasks import Task
from benchmarks.decisions.training import NUM_VALIDATIONS, Array, Outcome, train_together

import eigencurve as ec
from eigencurve._files import write_atomically

FOLDER = Path(__file__).with_name("tables")
DIGITS = 4


@dataclass(frozen=True, eq=False)
class Row:
    """One finished run.

    Attributes:
        schedule: Its schedule as text, see :func:`key_of`.
        seed: Seed of the initial weights and of the batches.
        final_train, final_valid: Losses of the last weights.
        averaged_train, averaged_valid: Losses of the weight averages.
        train: Mean loss of the batches in each window of T/64 steps; NaN after the end.
        valid: Validation loss at the end of each window.
        gradients: Root mean square of the gradient's norm in each window.
    """

    schedule: str
    seed: int
    final_train: float
    final_valid: float
    averaged_train: Array
    averaged_valid: Array
    train: Array
    valid: Array
    gradients: Array


class Table:
    """The finished runs of one task; ``rows_of`` trains what is missing."""

    def __init__(self, task: Task, folder: Path = FOLDER) -> None:
        self.task, self.path = task, folder / f"{task.name}.npz"
        self._rows = {(row.schedule, row.seed): row for row in _read(self.path)}

    def __len__(self) -> int:
        return len(self._rows)

    def missing(self, schedules: Iterable[ec.Schedule], seeds: Iterable[int]) -> list[tuple[str, int]]:
        """Keys of the runs that are not in the table."""
        keys = dict.fromkeys(key_of(schedule) for schedule in schedules)
        return [(key, seed) for seed in seeds for key in keys if (key, seed) not in self._rows]

    def row(self, schedule: ec.Schedule, seed: int) -> Row:
        """The run of a schedule and a seed; it must be in the table."""
        return self._rows[key_of(schedule), seed]

    def complete(self, schedules: Sequence[ec.Schedule], seeds: Sequence[int]) -> None:
        """Train the runs that are missing, and save the table after each group of runs with a common beginning."""
        wanted = sorted(self.missing(schedules, seeds), key=_group)
        for _, group in groupby(wanted, key=_group):
            keys = list(group)
            for key, outcome in self._train(keys):
                self._rows[key] = row_of(self.task, *key, outcome)
            self.save()

    def save(self) -> None:
        """Write the file."""
        content = io.BytesIO()
        rows = [self._rows[key] for key in sorted(self._rows)]
        columns = {field.name: np.array([getattr(row, field.name) for row in rows]) for field in fields(Row)}
        np.savez_compressed(content, **{name: _compact(column) for name, column in columns.items()})
        self.path.parent.mkdir(exist_ok=True)
        write_atomically(self.path, content.getvalue())

    def _train(self, keys: list[tuple[str, int]]) -> Iterable[tuple[tuple[str, int], Outcome]]:
        schedules = [ec.schedule_from_dict(json.loads(text)) for text, _ in keys]
        curves = [np.array(schedule.values()) for schedule in schedules]
        for place, outcome in train_together(self.task, keys[0][1], curves):
            yield keys[place], outcome


def key_of(schedule: ec.Schedule) -> str:
    """A schedule as text, with every number rounded to four digits, so that processors agree on it.

    >>> key_of(ec.constant(10, lr=1 / 3))
    '{"kind":"constant","lr":0.3333,"total_steps":10,"version":1}'
    """
    return json.dumps(_rounded(schedule.to_dict()), sort_keys=True, separators=(",", ":"))


def row_of(task: Task, schedule: str, seed: int, outcome: Outcome) -> Row:
    """The compact form of an outcome."""
    every = task.total_steps // NUM_VALIDATIONS
    shape = (len(outcome.train) // every, every)
    cut = shape[0] * every
    train = outcome.train[:cut].reshape(shape).mean(1)
    gradients = np.sqrt(np.square(outcome.gradients[:cut]).reshape(shape).mean(1))
    curves = [_padded(curve) for curve in (train, outcome.valid, gradients)]
    final = outcome.final_train, outcome.final_valid, outcome.averaged_train, outcome.averaged_valid
    return Row(schedule, seed, *final, *curves)


def _group(key: tuple[str, int]) -> tuple[int, float]:
    """Runs of one seed and one peak rate have common beginnings."""
    schedule = ec.schedule_from_dict(json.loads(key[0]))
    return key[1], float(max(schedule.values()))


def _padded(curve: Array) -> Array:
    return np.concatenate([curve, np.full(NUM_VALIDATIONS + 1 - len(curve), np.nan)])


def _compact(column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return column.astype(np.float32) if column.dtype == np.float64 else column


def _read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with np.load(path, allow_pickle=False) as arrays:
        columns = [arrays[field.name] for field in fields(Row)]
    return [Row(str(text), int(seed), *rest) for text, seed, *rest in zip(*columns, strict=True)]


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    if isinstance(value, float) and value:
        return round(value, DIGITS - 1 - floor(log10(abs(value))))
    return value
