"""``eigencurve studio``: serve the interactive page."""

from __future__ import annotations

from typing import Annotated

import typer

from eigencurve.cli.shell import FAILURE, new_app
from eigencurve.studio.launch import HOST, PORT, run

app = new_app()


@app.command()
def studio(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 allows access from other machines.")] = HOST,
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = PORT,
    browser: Annotated[bool, typer.Option(help="Open a browser window.")] = True,
) -> None:
    """Explore schedules on an interactive page in your browser.

    The page needs Streamlit: pip install eigencurve[studio].

    \b
    Examples:
      eigencurve studio
      eigencurve studio --port 8600 --no-browser
    """
    if run(host, port, open_browser=browser):
        raise typer.Exit(FAILURE)
