"""``eigencurve reproduce``: the paper's tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from eigencurve.commands import options
from eigencurve.commands.output import command_line, show_json, show_table
from eigencurve.commands.shell import new_app
from eigencurve.experiments.engine.workers import Workers
from eigencurve.experiments.registry import REGISTRY, Request, entry
from eigencurve.runs.store import Store

app = new_app()


@app.command()
def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(help="Which table; leave it out for the list.", autocompletion=lambda: list(REGISTRY)),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="A file or folder in place of the paper's data.")] = None,
    download: Annotated[bool, typer.Option(help="Fetch the paper's data where it is missing.")] = False,
    epochs: Annotated[
        list[int] | None, typer.Option(help="A budget; may be given several times. Default: the paper's.")
    ] = None,
    scale: Annotated[
        str, typer.Option(help="Of the deep-learning tables: paper, laptop (small networks, few images), or smoke.")
    ] = "paper",
    store: Annotated[Path, typer.Option(help="The file of finished runs; a killed search goes on from it.")] = Path(
        "eigencurve.sqlite"
    ),
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A folder for the page and its figures.")
    ] = None,
    workers: Annotated[int, typer.Option(help="How many processes; -1 for all cores.")] = -1,
    backend: Annotated[str, typer.Option(help="loky (this machine), sequential, or ray.")] = "loky",
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a table of the paper, or list those that can be made.

    \b
    Examples:
      eigencurve reproduce
      eigencurve reproduce ridge --output results
      eigencurve reproduce ridge --epochs 1 --epochs 5 --json
      eigencurve reproduce cifar10 --scale laptop --data folder --output results
    """
    if name is None:
        _list(as_json)
        return
    chosen = entry(name)
    request = Request(
        Store(store), Workers(workers, backend, address), data, download, tuple(epochs or ()), True, scale
    )
    try:
        report = chosen.make(request)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Finished runs are in {store}; the same command goes on from there.") from None
    command = command_line()
    if output is not None:
        report.write(output, request.store, command)
    if as_json:
        show_json(report.to_dict())
    else:
        _show(report.text(command))


def _list(as_json: bool) -> None:
    if as_json:
        show_json([{"name": e.name, "shows": e.shows, "needs": e.needs} for e in REGISTRY.values()])
    else:
        show_table(("name", "the paper's", "needs"), [(e.name, e.shows, e.needs) for e in REGISTRY.values()])


def _show(text: str) -> None:
    """Markdown, drawn on a terminal and plain in a pipe."""
    if sys.stdout.isatty():
        Console().print(Markdown(text))
    else:
        typer.echo(text, nl=False)
