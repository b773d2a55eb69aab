import contextlib
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, so only a change can make a test fail; `make test-random` draws new ones.
# No deadlines: they would be assertions about a clock.
settings.register_profile("deterministic", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile("deterministic")

# A background process ignores Ctrl-C, and its children inherit that; some tests interrupt their children.
with contextlib.suppress(ValueError):  # not the main thread
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data_path() -> Callable[[str], Path]:
    """Find a file under EIGENCURVE_DATA; skip the test with a message if it is missing."""

    def find(name: str) -> Path:
        folder = os.environ.get("EIGENCURVE_DATA")
        if not folder:
            pytest.skip("EIGENCURVE_DATA is not set to a folder with the real data")
        path = Path(folder) / name
        if not path.exists():
            pytest.skip(f"{name} is missing in EIGENCURVE_DATA")
        return path

    return find


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Make standard error look like a wide terminal; return a function that returns the last line drawn on it."""
    for name, value in {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "TERM": "xterm", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)

    def last_line():
        lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err).strip().splitlines()
        return lines[-1] if lines else ""

    return last_line
