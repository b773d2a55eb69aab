import os
import subprocess
import sys

import pytest

from eigencurve._files import exclusive, write_atomically


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


HOLD = """
import sys, time
from pathlib import Path
from eigencurve._files import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_lock_is_held_by_one_process_and_freed_when_it_is_killed(tmp_path):
    path = tmp_path / "run.npz"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError), exclusive(path):
            pytest.fail("two processes hold the lock")
    finally:
        holder.kill()
        holder.communicate()
    with exclusive(path), pytest.raises(BlockingIOError), exclusive(path):
        pytest.fail("the lock is held twice")
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path):
    target, link = tmp_path / "folder" / "target.bin", tmp_path / "link.bin"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    dangling = tmp_path / "dangling.bin"
    dangling.symlink_to(tmp_path / "later.bin")
    write_atomically(dangling, b"first")
    assert dangling.is_symlink()
    assert (tmp_path / "later.bin").read_bytes() == b"first"
