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

from eigencurve.forecast.columns import step_name
from eigencurve.forecast.formats.log import Cells, Keep, Log, left_out, listed, refuse_log, require_few_rows, whole_step

SEPARATORS = ",;\t"
RANGE_SUFFIXES = ("__MIN", "__MAX")
# The decimals at the end of a line, and how many lines they are compared with.
ENDING = re.compile(r"\.\d+(?:[eE][-+]?\d+)?$")
COMPARED = 100
HEADER = "The first line must name the columns, for example: step,lr,loss."


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
    whole, last = without_open_line(text)
    rows = _rows(path, whole)
    _, first = next(rows, (0, []))
    header = [name.strip() for name in first]
    _require_names(path, header)
    chosen, places = _metrics(path, header, run)
    steps = step_name(list(places))
    if steps is None:
        refuse_log(path, f"no column of steps; the columns are {listed(header)}", "Name it 'step'.")
    wanted = {name: place for name, place in places.items() if name != steps and keep(name)}
    cells = {name: Cells() for name in wanted}
    for line, row in rows:
        if [cell.strip() for cell in row] == header:
            _require_resumed(path, line, resumed)
            continue
        if len(row) != len(header):
            refuse_log(path, f"line {line} has {len(row)} cells, but the header has {len(header)}")
        found = {name: row[place] for name, place in wanted.items() if row[place].strip()}
        if not found:
            continue
        step = whole_step(path, f"line {line}", row[places[steps]])
        for name, cell in found.items():
            cells[name].add(step, _number(path, line, name, cell), line)
    notes = (left_out(f"line {whole.count(chr(10)) + 1}"),) if last else ()
    return Log(tuple(places), {name: cell.column() for name, cell in cells.items()}, "line", chosen, notes=notes)


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
    found = ENDING.search(line.rstrip())
    return len(found[0]) if found else 0


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """The number of each line that is not blank, and its cells."""
    first = text.lstrip().split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(SEPARATORS, key=first.count))
    count = 0
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                count += 1
                require_few_rows(path, count)
                yield reader.line_num, row
    except csv.Error as error:
        refuse_log(path, f"line {reader.line_num + 1} is not CSV: {error}")


def _require_names(path: Path, header: list[str]) -> None:
    if not any(header):
        refuse_log(path, "the file is empty")
    if all(_is_number(name) for name in header):
        refuse_log(path, f"the first line holds numbers, {listed(header)}", HEADER)
    repeated = sorted({name for name in header if name and header.count(name) > 1}) if len(header) < 10**4 else []
    if repeated:
        refuse_log(path, f"the header repeats {listed(repeated)}", "Rename or remove one of the columns.")


def _metrics(path: Path, header: list[str], run: str | None) -> tuple[str, dict[str, int]]:
    """The run that is read, and the place of each of its columns by the metric's name."""
    parts = [name.rpartition(" - ") for name in header]
    runs = list(dict.fromkeys(owner for owner, dash, _ in parts if dash))
    if run is not None and run not in runs:
        refuse_log(path, f"no run {run!r}; the runs are {listed(runs)}", "Pass one of them as run=, or leave it out.")
    if run is None and len(runs) > 1:
        refuse_log(path, f"the file holds {len(runs)} runs: {listed(runs)}", "Pass run= with the name of one.")
    chosen = run if run is not None else "".join(runs)
    places = {
        metric: place
        for place, (owner, dash, metric) in enumerate(parts)
        if not metric.endswith(RANGE_SUFFIXES) and (not dash or owner == chosen)
    }
    return chosen, places


def _require_resumed(path: Path, line: int, resumed: bool) -> None:
    if not resumed:
        remedy = "Two logs are in one file: split it. If a resumed run appended to its own log, pass resumed=True."
        refuse_log(path, f"line {line} repeats the header", remedy)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(path: Path, line: int, name: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        remedy = "Write decimals with a point." if "," in cell else ""
        refuse_log(path, f"line {line}, column {name[:80]!r}: {cell[:40]!r} is not a number", remedy)
