"""Logs as JSON: the ``trainer_state.json`` of transformers, a list of entries, or one entry per line.

An entry is an object with a step and any of the other values. transformers writes the mean loss since its last entry
as ``loss``, the losses of the evaluations as ``eval_loss``, and the rate of the last update as ``learning_rate``
(versions up to 4.50 that of the next one; huggingface/transformers#36973). Its last entry, a summary of the training,
is ignored.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eigencurve.forecast.columns import step_name
from eigencurve.forecast.formats.log import Keep, Log

HISTORY = "log_history"
SUMMARY = "train_runtime"


def read_entries(path: Path, text: str, keep: Keep) -> Log:
    """The columns of a JSON log that ``keep`` asks for.

    Raises:
        ValueError: The file is not JSON, has no list of entries, or an entry has no step.
    """
    log = Log(path, "entry", keep)
    content = _parsed(log, text)
    log.rate_delay = int(isinstance(content, dict) and HISTORY in content)
    entries = [entry for entry in _entries(log, content) if SUMMARY not in entry]
    for number, entry in enumerate(entries, start=1):
        steps = step_name(list(entry))
        values = {name: value for name, value in entry.items() if name != steps and value is not None}
        log.names |= dict.fromkeys(entry)
        log.add(number, None if steps is None else entry[steps], values)
    return log


def _entries(log: Log, content: Any) -> list[dict[str, Any]]:
    if isinstance(content, dict):
        content = content.get(HISTORY, [content])
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        remedy = "Pass the trainer_state.json of transformers, or one JSON object per line with step, lr and loss."
        log.refuse("the JSON holds no list of log entries", remedy)
    return content


def _parsed(log: Log, text: str) -> Any:
    """The whole text as JSON or, if it has more than one value, a list with that of each line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if "Extra data" not in error.msg:
            log.refuse(f"the JSON is damaged at line {error.lineno}: {error.msg}")
    except (RecursionError, ValueError) as error:
        log.refuse(f"the JSON cannot be read: {str(error)[:80]}")
    entries: list[Any] = []
    lines = text.rstrip().split("\n")
    for number, line in enumerate(lines, start=1):
        try:
            entries += [json.loads(line)] if line.strip() else []
        except (RecursionError, ValueError) as error:
            if number < len(lines) or text.endswith(("\n", "\r")):
                log.refuse(f"line {number} is not JSON: {str(error)[:80]}")
            log.warn_open_end(number)
    return entries
