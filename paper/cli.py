"""``python -m paper``: make a table or figure of the paper, or of a further study."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from paper.engine.exchange import add_runs, write_runs
from paper.engine.request import BACKENDS, Request, Workers
from paper.page import ResultsPage, made_by_line
from paper.registry import REGISTRY, entry_named

WRONG_USE, FAILURE, INTERRUPTED = 2, 1, 130


def main(words: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 2 for wrong use, 1 for a failure, 130 for Ctrl-C."""
    words = sys.argv[1:] if words is None else words
    options = _parser().parse_args(words)
    try:
        if options.name is None:
            _list(options.json)
        else:
            _make(options, "python -m paper " + shlex.join(word for word in words if word != "--debug"))
    except KeyboardInterrupt:
        where = f" Finished runs are in {options.store}; the same command resumes from there."
        print(f"Interrupted.{where if options.store.exists() else ''}", file=sys.stderr)
        return INTERRUPTED
    except (ArithmeticError, ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        if options.debug:
            raise
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return WRONG_USE if isinstance(error, ValueError | TypeError) else FAILURE
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m paper", description=__doc__.partition(": ")[2].capitalize())
    add = parser.add_argument
    add("name", nargs="?", help="name of the table; omit it for the list")
    add("--data", type=Path, help="file or folder of the data (default: $EIGENCURVE_DATA)")
    add("--download", action="store_true", help="download missing data")
    add("--epochs", type=int, action="append", default=[], help="length of the runs; repeat it for several")
    add("--scale", default="paper", help="size of the deep-learning experiments: paper, desk, laptop, or smoke")
    add("--part", help="part of the runs to do; finished does none and shows what there is")
    add("--store", type=Path, default=Path("eigencurve.sqlite"), help="file of finished runs, to resume from")
    add("--runs", type=Path, help="text file of finished runs: added to the store first, written at the end")
    add("-o", "--output", type=Path, help="folder to write the page and its figures to")
    add("--workers", type=int, default=-1, help="number of worker processes; -1 for all cores")
    add("--backend", default="loky", choices=BACKENDS, help="this machine, this process, or a Ray cluster")
    add("--address", help="address of a Ray cluster")
    add("--json", action="store_true", help="print plain values as JSON")
    add("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _make(options: argparse.Namespace, command: str) -> None:
    entry = entry_named(options.name)
    workers = Workers(options.workers, options.backend, options.address)
    request = Request(
        options.store, workers, options.data, options.download, options.epochs, True, options.scale, options.part
    )
    if options.runs is not None and options.runs.exists():
        add_runs(request.store, options.runs)
    page, made_by = entry.make(request), made_by_line(command)
    if options.json:
        _print_json({"table": entry.name, **(page.values or {"text": page.body})})
    else:
        _show(page, made_by)
    for path in [] if options.output is None else page.write(options.output, made_by):
        print(f"wrote {path}", file=sys.stderr)
    if options.runs is not None:
        print(f"wrote {write_runs(request.store, options.runs):,} runs to {options.runs}", file=sys.stderr)


def _list(as_json: bool) -> None:
    if as_json:
        _print_json([{"name": e.name, "shows": e.shows, "needs": e.needs} for e in REGISTRY.values()])
        return
    for entry in REGISTRY.values():
        print(f"{entry.name:<23}{entry.shows}\n{'':<23}needs {entry.needs}")


def _show(page: ResultsPage, made_by: str) -> None:
    """Print a page: rendered on a terminal, unchanged in a pipe."""
    text = page.text(made_by)
    if sys.stdout.isatty():
        Console().print(Markdown(text))
    else:
        print(text, end="")


def _print_json(values: object) -> None:
    print(json.dumps(values, indent=1, allow_nan=False))
