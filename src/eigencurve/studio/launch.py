"""Start the page with Streamlit, in a process that ends with this one.

``python -P -m eigencurve.studio.launch PID WORDS`` is that process: it runs Streamlit until the process PID ends.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from eigencurve._process import end_with_parent

HOST, PORT = "127.0.0.1", 8501
# Limit of an uploaded file.
MOST_MEGABYTES = 5
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
    # -P keeps the current folder out of the import path: a streamlit.py there must not be run.
    return [sys.executable, "-P", "-m", "eigencurve.studio.launch", str(os.getpid()), "run", str(APP), *flags]


def run(host: str = HOST, port: int = PORT, open_browser: bool = True) -> int:
    """Serve the page until it is interrupted or asked to end. The server always ends first.

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
    with _signals_end_the_block():
        server = subprocess.Popen(command(host, port, open_browser))
        try:
            return server.wait()
        finally:
            server.terminate()
            server.wait()


@contextlib.contextmanager
def _signals_end_the_block() -> Iterator[None]:
    """Raise SystemExit in the block on SIGTERM and SIGHUP, which would end this process without any cleanup."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)] if is_main else []
    before = [signal.signal(number, end) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _serve() -> None:
    """Run Streamlit with the words that follow the process id of the parent."""
    end_with_parent(int(sys.argv.pop(1)))
    runpy.run_module("streamlit", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve()
