"""What commands print, and the files that they write."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from eigencurve._files import write_atomically
from eigencurve.planning.exports import json_bytes

# A table in a pipe is as wide as it needs to be; nothing is cut off.
PIPE_WIDTH = 10_000


def show_json(fields: Any) -> None:
    """Plain values on standard output."""
    typer.echo(json_bytes(fields).decode(), nl=False)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """A table: fitted to a terminal, plain and uncut in a pipe. ``right``: the columns to align so."""
    terminal = sys.stdout.isatty()
    table = Table(box=box.SIMPLE_HEAD if terminal else None, pad_edge=False, show_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place in right else "left", no_wrap=not terminal)
    for row in rows:
        table.add_row(*row)
    text = Console(width=None if terminal else PIPE_WIDTH)
    with text.capture() as captured:
        text.print(table)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def require_writable(paths: Sequence[Path], endings: Sequence[str], force: bool) -> None:
    """Refuse, before any work is done, another ending, to overwrite a file, or a folder that is not there."""
    for path in paths:
        if str(path) == "-":
            continue
        if path.suffix.lower() not in endings:
            raise ValueError(f"{path}: the name must end in {', '.join(endings)}.")
        if path.is_dir():
            raise ValueError(f"{path} is a folder.")
        if path.exists() and not force:
            raise ValueError(f"{path} exists; --force overwrites it.")
        if not path.parent.is_dir():
            raise ValueError(f"there is no folder {path.parent} to write {path.name} into.")


def command_line() -> str:
    """The words that this program was called with, to be kept beside what they made."""
    return "eigencurve " + shlex.join(word for word in sys.argv[1:] if word != "--debug")


def read(path: Path) -> bytes:
    """The bytes of a file; ``-`` is standard input."""
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()


def write(path: Path, content: bytes) -> None:
    """Write a file in one step and say so on standard error; ``-`` is standard output."""
    if str(path) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    write_atomically(path, content)
    typer.echo(f"wrote {path}", err=True)
