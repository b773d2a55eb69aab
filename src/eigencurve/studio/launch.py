"""Start the page with Streamlit."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from eigencurve.studio.source import MOST_MEGABYTES

HOST, PORT = "127.0.0.1", 8501
APP = Path(__file__).with_name("app.py")


def command(host: str = HOST, port: int = PORT, open_browser: bool = True) -> list[str]:
    """The command that serves the page, without usage statistics, large uploads or stack traces."""
    options = {
        "server.address": host,
        "server.port": str(port),
        "server.headless": str(not open_browser).lower(),
        "server.showEmailPrompt": "false",
        "server.maxUploadSize": str(MOST_MEGABYTES),
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
        "client.showErrorDetails": "none",
        "client.toolbarMode": "viewer",
        "runner.magicEnabled": "false",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "streamlit", "run", str(APP), *flags]


def run(host: str = HOST, port: int = PORT, open_browser: bool = True) -> int:
    """Serve the page until it is interrupted. The interrupt reaches the caller after the server has stopped.

    Args:
        host: Address to listen on. The default is reachable from this machine only.
        port: Port to listen on.
        open_browser: Whether to open a browser.

    Returns:
        Exit code of the server.

    Raises:
        ImportError: If Streamlit or plotly is not installed.
    """
    missing = [name for name in ("streamlit", "plotly") if find_spec(name) is None]
    if missing:
        raise ImportError(f"the studio needs {' and '.join(missing)}: pip install eigencurve[studio]")
    server = subprocess.Popen(command(host, port, open_browser))
    try:
        return server.wait()
    finally:
        server.terminate()
        server.wait()
