"""Printing, and reading and writing of files, for all commands."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from eigencurve._files import json_bytes, write_atomically
from eigencurve.cli.options import Force
from eigencurve.figures import FIGURE_SUFFIXES
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.kinds import csv_bytes

SCHEDULE_SUFFIXES = (".json", ".csv", *FIGURE_SUFFIXES)
# Files with their contents, which exist before the first file is written.
Contents = list[tuple[Path, bytes]]


def show_json(fields: Any) -> None:
    """Print plain values as JSON."""
    typer.echo(json_bytes(fields).decode(), nl=False)


def require_writable(paths: Sequence[Path], endings: Sequence[str], force: bool) -> None:
    """Raise, before any work is done, if a file has the wrong ending, exists already, or has no folder to be in."""
    for path in paths:
        if str(path) == "-":
            continue
        if path.suffix.lower() not in endings:
            raise ValueError(f"{path}: the file name must end in one of {', '.join(endings)}.")
        if path.is_dir():
            raise ValueError(f"{path} is a folder.")
        if path.exists() and not force:
            raise ValueError(f"{path} already exists. Pass --force to overwrite it.")
        if not path.parent.is_dir():
            raise ValueError(f"cannot write {path}: the folder {path.parent} does not exist.")


def warn(sentences: Sequence[str]) -> None:
    """Print warnings on standard error, one line each."""
    for sentence in sentences:
        typer.echo(f"warning: {sentence}", err=True)


def command_line() -> str:
    """The command line of this process, to be recorded with its results."""
    return "eigencurve " + shlex.join(word for word in sys.argv[1:] if word != "--debug")


def read(path: Path) -> bytes:
    """Read a file; ``-`` is standard input."""
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()


def write(path: Path, content: bytes) -> None:
    """Write a file atomically and report it on standard error; ``-`` is standard output."""
    if str(path) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    write_atomically(path, content)
    typer.echo(f"wrote {path}", err=True)


@dataclass(frozen=True)
class ScheduleFiles:
    """The files of a schedule to write."""

    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o", "--output", help="File for the schedule (.json, .csv, .png, .svg or .pdf). Can be repeated."
        ),
    ] = None
    force: Force = False

    def __bool__(self) -> bool:
        return bool(self.output)

    def check(self) -> None:
        """Raise if a file cannot be written."""
        require_writable(self.output or [], SCHEDULE_SUFFIXES, self.force)

    def contents(self, schedule: Schedule) -> Contents:
        """The content of each file."""
        return [(path, schedule_content(schedule, path)) for path in self.output or []]


def schedule_content(schedule: Schedule, path: Path) -> bytes:
    """The content of an exported schedule in the format of the file's ending, one of ``SCHEDULE_SUFFIXES``."""
    suffix = path.suffix.lower()
    if suffix == ".json":
        return json_bytes(schedule.to_dict())
    if suffix == ".csv":
        return csv_bytes(schedule)
    from eigencurve.figures.canvas import figure_bytes  # imports matplotlib, which only figures need
    from eigencurve.figures.schedules import schedule_figure

    return figure_bytes(schedule_figure(schedule), suffix)


def write_all(contents: Contents) -> None:
    """Write files; see :func:`write`."""
    for path, content in contents:
        write(path, content)
