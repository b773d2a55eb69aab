import re

import pytest


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Make standard error look like a wide terminal; return a function that returns the last line drawn on it."""
    for name, value in {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "TERM": "xterm", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)

    def last_line():
        lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err).strip().splitlines()
        return lines[-1] if lines else ""

    return last_line
