"""Logs as CSV: plain files, Lightning's ``metrics.csv``, and the exports of Weights & Biases.

A cell may be blank: Lightning writes the loss and the learning rate on different lines. Commas, semicolons or tabs
separate the cells. Weights & Biases exports columns ``<run> - <metric>``, each with two more that end in ``__MIN`` and
``__MAX``; those two are ignored.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from eigencurve._check import Arg
from eigencurve.forecast.columns import step_name
from eigencurve.forecast.formats.log import Keep, Log, listed

SEPARATORS = ",;\t"
RANGE_SUFFIXES = ("__MIN", "__MAX")
# The decimals at the end of a line, and how many lines they are compared with.
ENDING = re.compile(r"\.\d+(?:[eE][-+]?\d+)?$")
COMPARED = 100
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan|[-+]?inf(inity)?", re.IGNORECASE)


def read_delimited(path: Path, text: str, keep: Keep, run: str | None = None, resumed: bool = False) -> Log:
    """The columns of a CSV file that ``keep`` asks for.

    Args:
        path: Path of the file, for error messages.
        text: Content of the file.
        keep: Whether to read a column, by its name.
        run: The run to read from an export with several.
        resumed: Whether the header may be repeated, as when a resumed run appends to its log.

    Raises:
        ValueError: There is no header or no column of steps, a line is incomplete, or a cell is not a number.
    """
    log = Log(path, "line", keep)
    whole, last = without_open_line(text)
    rows = _rows(log, whole)
    _, first = next(rows, (0, []))
    header = [name.strip() for name in first]
    _require_names(log, header)
    places = _metrics(log, header, run)
    steps = step_name(list(places))
    if steps is None:
        log.refuse(f"no column of steps; the columns are {listed(header)}", "Name it 'step'.")
    log.names = dict.fromkeys(places)
    wanted = {name: place for name, place in places.items() if name != steps and keep(name)}
    for line, row in rows:
        if [cell.strip() for cell in row] == header:
            if not resumed:
                remedy = "Two logs are in one file: split it. If a resumed run appended to its own log, set "
                log.refuse(f"line {line} repeats the header", remedy, Arg("resumed"), ".")
            continue
        if len(row) != len(header):
            log.refuse(f"line {line} has {len(row)} cells, but the header has {len(header)}")
        log.add(line, row[places[steps]], {name: row[place] for name, place in wanted.items() if row[place].strip()})
    if last:
        log.warn_open_end(whole.count("\n") + 1)
    return log


def without_open_line(text: str) -> tuple[str, str]:
    r"""The text without a last line that may be cut, and that line.

    A line without a line end is complete if its last number has as many decimals as the longest of the lines before.

    >>> without_open_line("step,loss\n1,2.34\n2,2.31\n3,2.2")
    ('step,loss\n1,2.34\n2,2.31\n', '3,2.2')
    >>> without_open_line("step,loss\n1,2.34\n2,2.31\n3,2.29")[1]
    ''
    """
    place = max(text.rfind("\n"), text.rfind("\r")) + 1
    lines = text[:place].splitlines()[-COMPARED:]
    if not text[place:].strip() or len(lines) < 2:
        return text, ""
    longest = max(_decimals(line) for line in lines[1:])
    complete = 0 < longest <= _decimals(text[place:])
    return (text, "") if complete else (text[:place], text[place:])


def _decimals(line: str) -> int:
    """The number of characters from the decimal point of a line's last number; 0 if it has none."""
    decimals = ENDING.search(line.rstrip())
    return len(decimals[0]) if decimals else 0


def _rows(log: Log, text: str) -> Iterator[tuple[int, list[str]]]:
    """The number of each line that is not blank, and its cells."""
    first = text.lstrip().split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(SEPARATORS, key=first.count))
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        log.refuse(f"line {reader.line_num + 1} is not CSV: {error}")


def _require_names(log: Log, header: list[str]) -> None:
    if not any(header):
        log.refuse("the file is empty")
    if all(NUMBER.fullmatch(name) for name in header):
        remedy = "The first line must name the columns, for example: step,lr,loss."
        log.refuse(f"the first line holds numbers, {listed(header)}", remedy)
    repeated = sorted({name for name in header if name and header.count(name) > 1}) if len(header) < 10**4 else []
    if repeated:
        log.refuse(f"the header repeats {listed(repeated)}", "Rename or remove one of the columns.")


def _metrics(log: Log, header: list[str], run: str | None) -> dict[str, int]:
    """The place of each column of the chosen run by the metric's name; the log gets the name of the run."""
    parts = [name.rpartition(" - ") for name in header]
    runs = list(dict.fromkeys(owner for owner, dash, _ in parts if dash))
    if run is not None and run not in runs:
        log.refuse(
            f"no run {run!r}; the runs are {listed(runs)}", "Pass one of them as ", Arg("run"), ", or leave it out."
        )
    if run is None and len(runs) > 1:
        log.refuse(f"the file holds {len(runs)} runs: {listed(runs)}", "Pass ", Arg("run"), " with the name of one.")
    log.run = run if run is not None else "".join(runs)
    return {
        metric: place
        for place, (owner, dash, metric) in enumerate(parts)
        if not metric.endswith(RANGE_SUFFIXES) and (not dash or owner == log.run)
    }
