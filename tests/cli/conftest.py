import pytest
from tests.cli.golden import prepare


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files of the golden cases, as the current one."""
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    return tmp_path
