import os

import pytest

from eigencurve._files import write_atomically


def test_the_content_is_written_and_replaced(tmp_path):
    path = tmp_path / "a.bin"
    for content in (b"first", b"", b"second"):
        write_atomically(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failing", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(failing, error, tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def fail(*_):
        raise error("half way")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(error, match="half way"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_permissions_that_open_would_give_it(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    write_atomically(tmp_path / "a.bin", b"")
    assert (tmp_path / "a.bin").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o640
