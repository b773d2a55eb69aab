"""``eigencurve demo``: the whole job on a small network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigencurve.cli import options
from eigencurve.cli.output import require_writable, show_json, write
from eigencurve.cli.shell import new_app

app = new_app()


@app.command()
def demo(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="HTML file to write, with all details and figures.")
    ] = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Measure a small network, plan its next run, and race the plan.

    The recommended schedule races against the usual ones, each at its own best rate. It takes half a minute and needs
    scikit-learn's digits: pip install 'eigencurve[demo]'.

    \b
    Examples:
      eigencurve demo
      eigencurve demo -o demo.html
    """
    require_writable([] if output is None else [output], (".html",), force)
    try:
        from eigencurve.demo.run import run_demo
    except ImportError as error:
        cause = error.__cause__ or error
        if not isinstance(cause, ModuleNotFoundError):
            raise
        name = str(cause.name).split(".")[0]
        raise ImportError(f"demo: {name} is not installed. Run: pip install 'eigencurve[demo]'") from error
    result = run_demo(progress=True)
    if as_json:
        show_json(result.to_dict())
    else:
        typer.echo(str(result))
    if output is not None:
        write(output, result.to_html().encode())
