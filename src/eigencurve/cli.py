"""The command line: parse, call one public function, print."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from eigencurve import __version__
from eigencurve.experiments.store import Store
from eigencurve.experiments.tables import REGISTRY, Request, entry
from eigencurve.experiments.workers import Workers

app = typer.Typer(no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False)
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The learning-rate schedule that the curvature of your loss calls for."""


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="Which table; leave it out for the list.")] = None,
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
    output: Annotated[Path | None, typer.Option(help="A folder for the page and its figures.")] = None,
    workers: Annotated[int, typer.Option(help="How many processes; -1 for all cores.")] = -1,
    backend: Annotated[str, typer.Option(help="loky (this machine), sequential, or ray.")] = "loky",
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make a table of the paper, or list those that can be made.

    Examples: eigencurve reproduce ridge --output results
              eigencurve reproduce ridge --epochs 1 --epochs 5 --json
    """
    try:
        if name is None:
            _list(as_json)
            return
        chosen = entry(name)
        request = Request(
            Store(store), Workers(workers, backend, address), data, download, tuple(epochs or ()), True, scale
        )
        report = chosen.make(request)
        command = "eigencurve " + shlex.join(sys.argv[1:])
        if output is not None:
            report.write(output, request.store, command)
        _show(report.to_dict() if as_json else report.text(command))
    except KeyboardInterrupt:
        typer.echo(f"Interrupted. Finished runs are in {store}; the same command goes on from there.", err=True)
        raise typer.Exit(130) from None
    except (ValueError, TypeError) as error:
        _fail(error, 2, debug)
    except (ImportError, OSError, RuntimeError) as error:
        _fail(error, 1, debug)


def _list(as_json: bool) -> None:
    if as_json:
        _show([{"name": e.name, "shows": e.shows, "needs": e.needs} for e in REGISTRY.values()])
        return
    table = Table("name", "the paper's", "needs")
    for e in REGISTRY.values():
        table.add_row(e.name, e.shows, e.needs)
    Console().print(table)


def _show(content: Any) -> None:
    """JSON for values; Markdown drawn on a terminal and plain in a pipe."""
    if not isinstance(content, str):
        typer.echo(json.dumps(content, indent=1))
    elif sys.stdout.isatty():
        Console().print(Markdown(content))
    else:
        typer.echo(content, nl=False)


def _fail(error: Exception, code: int, debug: bool) -> None:
    if debug:
        raise error
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(code) from None


if __name__ == "__main__":
    app()
