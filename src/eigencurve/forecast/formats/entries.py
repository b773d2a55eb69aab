"""Logs as JSON: the ``trainer_state.json`` of transformers, a list of entries, or one entry per line.

An entry is an object with a step and any of the other values. transformers writes the mean loss since its last entry
as ``loss``, the losses of the evaluations as ``eval_loss``, and the rate of the last update as ``learning_rate``
(versions up to 4.50 that of the next one; huggingface/transformers#36973). Its last entry, a summary of the training,
is ignored.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from eigencurve.forecast.columns import step_name
from eigencurve.forecast.formats.log import Cells, Keep, Log, left_out, listed, refuse_log, require_few_rows, whole_step

HISTORY = "log_history"
SUMMARY = "train_runtime"


def read_entries(path: Path, text: str, keep: Keep) -> Log:
    """The columns of a JSON log that ``keep`` asks for.

    Raises:
        ValueError: The file is not JSON, has no list of entries, or an entry has no step.
    """
    content, notes = _parsed(path, text)
    is_trainer_state = isinstance(content, dict) and HISTORY in content
    entries = [entry for entry in _entries(path, content) if SUMMARY not in entry]
    require_few_rows(path, len(entries))
    cells: dict[str, Cells] = {}
    names: dict[str, None] = {}
    for number, entry in enumerate(entries, start=1):
        steps = step_name(list(entry))
        names |= dict.fromkeys(entry)
        found = {name: value for name, value in entry.items() if name != steps and value is not None and keep(name)}
        if not found:
            continue
        if steps is None:
            refuse_log(path, f"entry {number} has no step; its names are {listed(entry)}", "Name it 'step'.")
        step = whole_step(path, f"entry {number}", entry[steps])
        for name, value in found.items():
            cells.setdefault(name, Cells()).add(step, _number(path, number, name, value), number)
    columns = {name: cell.column() for name, cell in cells.items()}
    return Log(tuple(names), columns, "entry", rate_delay=int(is_trainer_state), notes=notes)


def _entries(path: Path, content: Any) -> list[dict[str, Any]]:
    if isinstance(content, dict):
        content = content.get(HISTORY, [content])
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        remedy = "Pass the trainer_state.json of transformers, or one JSON object per line with step, lr and loss."
        refuse_log(path, "the JSON holds no list of log entries", remedy)
    return content


def _parsed(path: Path, text: str) -> tuple[Any, tuple[str, ...]]:
    """The whole text as JSON or, if it has more than one value, a list with that of each line; and what is left out."""
    try:
        return json.loads(text), ()
    except json.JSONDecodeError as error:
        if "Extra data" not in error.msg:
            refuse_log(path, f"the JSON is damaged at line {error.lineno}: {error.msg}")
    except (RecursionError, ValueError) as error:
        refuse_log(path, f"the JSON cannot be read: {str(error)[:80]}")
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    require_few_rows(path, len(lines))
    notes: tuple[str, ...] = ()
    if not text.endswith(("\n", "\r")) and not _is_json(lines[-1][1]):
        notes, lines = (left_out(f"line {lines[-1][0]}"),), lines[:-1]
    return [_line(path, number, line) for number, line in lines], notes


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (RecursionError, ValueError):
        return False
    return True


def _line(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (RecursionError, ValueError) as error:
        refuse_log(path, f"line {number} is not JSON: {str(error)[:80]}")


def _number(path: Path, entry: int, name: str, value: Any) -> float:
    """A JSON number; infinity and NaN may be texts, as some loggers write them."""
    try:
        number = float("x" if isinstance(value, bool) else value)
        if isinstance(value, str) and math.isfinite(number):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        refuse_log(path, f"entry {entry}, {name[:80]!r}: {str(value)[:40]!r} is not a number")
    return number
