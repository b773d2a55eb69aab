"""``eigencurve reproduce``: the tables and figures of the experiments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from eigencurve.commands import options
from eigencurve.commands.applicable import require_applicable
from eigencurve.commands.output import command_line, show_json, show_table
from eigencurve.commands.shell import new_app
from eigencurve.experiments.engine.request import Request, Workers
from eigencurve.experiments.page import made_by_line
from eigencurve.experiments.registry import REGISTRY, entry_named
from eigencurve.runs.exchange import add_runs, write_runs

app = new_app()


@app.command()
def reproduce(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(help="Name of the table; omit it for the list.", autocompletion=lambda: list(REGISTRY)),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="File or folder of the data. Default: $EIGENCURVE_DATA.")] = None,
    download: Annotated[bool, typer.Option(help="Download missing data.")] = False,
    epochs: Annotated[
        list[int] | None, typer.Option(help="Length of the runs; repeat it for several. Default: the paper's.")
    ] = None,
    scale: Annotated[
        str, typer.Option(help="Size of the deep-learning experiments: paper, desk, laptop, or smoke (a smoke test).")
    ] = "paper",
    part: Annotated[
        str | None, typer.Option(help="Part of the runs to do; finished does none and shows what there is.")
    ] = None,
    store: Annotated[Path, typer.Option(help="File of finished runs; the same command resumes from it.")] = Path(
        "eigencurve.sqlite"
    ),
    runs: Annotated[
        Path | None,
        typer.Option(help="Text file of finished runs: added to the store first if it exists, written at the end."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder to write the page and its figures to.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Number of worker processes; -1 for all cores.")] = -1,
    backend: Annotated[str, typer.Option(help="loky (this machine), sequential (this process), or ray.")] = "loky",
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a table or figure of the experiments, or list them all.

    \b
    Examples:
      eigencurve reproduce
      eigencurve reproduce demo --output demo-output
      eigencurve reproduce ridge --output results
      eigencurve reproduce ridge --epochs 1 --epochs 5 --json
      eigencurve reproduce cifar10 --scale laptop --data folder --output results
    """  # fmt: skip
    if name is None:
        parameters = (str(parameter.name) for parameter in context.command.params)
        alone = {option: ("table",) for option in parameters if option not in ("name", "as_json")}
        require_applicable(context, "list", {"list": "without a NAME", "table": "with a NAME"}, alone)
        _list(as_json)
        return
    entry = entry_named(name)
    pool = Workers(workers, backend, address)
    made_by = made_by_line(command_line())
    request = Request(store, pool, data, download, tuple(epochs or ()), True, scale, part)
    if runs is not None and runs.exists():
        add_runs(request.store, runs)
    try:
        page = entry.make(request)
    except KeyboardInterrupt:
        where = f"Finished runs are in {store}; the same command resumes from there." if store.exists() else ""
        raise KeyboardInterrupt(where) from None
    if as_json:
        show_json({"table": name, **(page.values or {"text": page.body})})
    else:
        _show(page.printed(made_by))
    for path in [] if output is None else page.write(output, made_by):
        typer.echo(f"wrote {path}", err=True)
    if runs is not None:
        typer.echo(f"wrote {write_runs(request.store, runs):,} runs to {runs}", err=True)


def _list(as_json: bool) -> None:
    if as_json:
        show_json([{"name": e.name, "shows": e.shows, "needs": e.needs} for e in REGISTRY.values()])
    else:
        show_table(("name", "shows", "needs"), [(e.name, e.shows, e.needs) for e in REGISTRY.values()])


def _show(text: str) -> None:
    """Print Markdown: rendered on a terminal, unchanged in a pipe."""
    if sys.stdout.isatty():
        Console().print(Markdown(text))
    else:
        typer.echo(text, nl=False)
