import sys

import pytest
from tests.cli.folder import prepare


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files of :mod:`tests.cli.folder`, as the current one, on Python's path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["", *sys.path])
    prepare(tmp_path)
    return tmp_path
