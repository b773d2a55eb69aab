"""``eigencurve studio``: the interactive page."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import as_file, files
from importlib.util import find_spec
from typing import Annotated

import typer

from eigencurve.commands.shell import FAILURE, INTERRUPTED, new_app

app = new_app()


@app.command()
def studio(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8501,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Open the interactive page in a browser.

    It needs Streamlit: pip install eigencurve[studio].

    \b
    Examples:
      eigencurve studio
      eigencurve studio --port 8600 --no-browser
    """
    if find_spec("streamlit") is None:
        raise ImportError("eigencurve studio needs Streamlit: pip install eigencurve[studio]")
    with as_file(files("eigencurve").joinpath("studio", "app.py")) as page:
        if not page.exists():
            raise RuntimeError("this installation of eigencurve has no studio.")
        raise typer.Exit(_serve(str(page), host, port, browser))


def _serve(page: str, host: str, port: int, browser: bool) -> int:
    settings = {
        "server.address": host, "server.port": port, "server.headless": str(not browser).lower(),
        "browser.gatherUsageStats": "false",
    }  # fmt: skip
    words = [f"--{name}={value}" for name, value in settings.items()]
    try:
        code = subprocess.run([sys.executable, "-m", "streamlit", "run", page, *words], check=False).returncode
    except KeyboardInterrupt:
        return INTERRUPTED
    return FAILURE if code else 0
