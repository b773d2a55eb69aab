"""Finished runs as a text file: carry them from one store to another, or publish them next to their table."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from eigencurve.runs import Run, Store, key_of
from paper import checks
from paper.files import write_atomically

VERSION = 1
# All columns of a run, and the types of their values.
TYPES: Mapping[str, type | tuple[type, ...]] = {
    "key": str, "experiment": str, "settings": dict, "seed": int, "metrics": dict, "diverged": int,
    "curve": (list, dict), "versions": dict, "revision": str, "finished": (int, float), "seconds": (int, float),
}  # fmt: skip
# Exceptions that reading a damaged run may raise.
DAMAGE = (AttributeError, KeyError, TypeError, ValueError, RecursionError)


def write_runs(store: Store, path: str | os.PathLike[str]) -> int:
    """Write all runs of ``store`` to ``path`` and return their number.

    The first line has a checksum of the others; each of these is one run as JSON. The runs are sorted, so two files of
    the same runs are equal.
    """
    rows = [row for experiment in store.experiments() for row in store.rows(experiment)]
    body = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows).encode()
    head = json.dumps({"eigencurve": "runs", "version": VERSION, "check": _digest(body)})
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(Path(path), f"{head}\n".encode() + body)
    return len(rows)


def read_runs(runs: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The runs in a file of :func:`write_runs`, as :meth:`Store.rows` returns them.

    Args:
        runs: Path of the file.

    Raises:
        ValueError: The file is damaged, of another kind or of a later version.
        OSError: The file cannot be read.
    """
    head, _, body = Path(runs).read_bytes().partition(b"\n")
    try:
        header = json.loads(head)
        version, check = (header["version"], header["check"]) if header["eigencurve"] == "runs" else (None, None)
    except DAMAGE:
        version = check = None
    if version != VERSION:
        _refuse(runs, "a file of finished runs", "another kind of file" if version is None else f"version {version}")
    if check != _digest(body):
        _refuse(runs, "a file of finished runs in good order", "it does not match its checksum")
    return [_row(runs, number, line) for number, line in enumerate(body.splitlines(), 2)]


def add_runs(store: Store, runs: str | os.PathLike[str]) -> None:
    """Add the runs of :func:`read_runs` to ``store``; runs that it has are kept."""
    store.add_rows(read_runs(runs))


def _row(path: str | os.PathLike[str], number: int, line: bytes) -> dict[str, Any]:
    """One run. A wrong key would make the whole store unreadable, so it is checked in spite of the checksum."""
    try:
        entry = json.loads(line)
        row = {name: entry[name] for name in TYPES}
        is_run = all(isinstance(row[name], kind) for name, kind in TYPES.items())
        is_run = is_run and row["key"] == key_of(row["experiment"], Run(row["settings"], row["seed"]))
    except DAMAGE:
        is_run = False
    if not is_run:
        _refuse(path, "a file of finished runs", f"line {number} is not a run")
    return row


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _refuse(path: str | os.PathLike[str], constraint: str, found: str) -> NoReturn:
    remedy = "Restore the file, or delete it: --runs writes it again from the store."
    checks.refuse("read_runs", "runs", constraint, f"{os.fspath(path)}: {found}", remedy)
