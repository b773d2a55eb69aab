import os
import subprocess
import sys
from pathlib import Path

import pytest

from eigencurve._files import companion, companions, exclusive, write_atomically


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


LONG = ["a" * 200 + ".npz", "a" * 236 + ".npz", "a" * 250 + ".npz", "a" * 251 + ".npz", "é" * 125 + ".txt", "日" * 85]


@pytest.mark.parametrize("name", LONG, ids=lambda name: str(len(os.fsencode(name))))
def test_every_name_that_the_file_system_allows_can_be_written_and_locked(tmp_path, name):
    path = tmp_path / name
    for content in (b"old", b"new"):
        with exclusive(path):
            write_atomically(path, content)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_of_a_long_name_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_atomically(tmp_path / ("x" * 255), b"new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["run.npz", *LONG])
def test_a_companion_is_next_to_its_file_and_has_a_legal_name_of_its_own(tmp_path, name):
    path, other = tmp_path / name, tmp_path / (name[:-1] + "#")
    found = {companion(owner, ending) for owner in (path, other) for ending in (".rows-0-0", ".rows-10-1", ".next")}
    assert len(found) == 6
    assert all(file.parent == tmp_path and len(os.fsencode(file.name)) <= 255 for file in found)
    for file in found:
        file.touch()
    assert {file for file, _ in companions(path, r"\.rows-(\d+)-(\d+)")} == {
        companion(path, ".rows-0-0"), companion(path, ".rows-10-1")
    }  # fmt: skip


def test_a_short_name_keeps_its_ending_in_plain_sight(tmp_path):
    assert companion(tmp_path / "run.npz", ".rows-0-0").name == "run.npz.rows-0-0"
    assert companion(tmp_path / ("a" * 246), ".rows-0-0").name == "a" * 246 + ".rows-0-0"


def test_companions_are_found_by_their_name_and_not_by_a_pattern(tmp_path):
    for name in ("run[1].npz.rows-0-0", "run1.npz.rows-0-0", "run[1].npz.rows-0-0.old", "run[1]xnpz.rows-0-0"):
        (tmp_path / name).touch()
    (match,) = companions(tmp_path / "run[1].npz", r"\.rows-(\d+)-(\d+)")
    assert (match[0].name, match[1].groups()) == ("run[1].npz.rows-0-0", ("0", "0"))
    assert companions(tmp_path / "missing" / "run.npz", ".*") == []


def test_a_link_and_its_target_have_one_lock(tmp_path):
    target, link = tmp_path / "folder" / "run.npz", tmp_path / "link.npz"
    target.parent.mkdir()
    link.symlink_to(target)
    with exclusive(link):
        with pytest.raises(BlockingIOError), exclusive(target):
            pytest.fail("the target is not locked")
        assert [file.name for file in target.parent.iterdir()] == ["run.npz.lock"]
    assert list(target.parent.iterdir()) == []


def test_a_lock_is_removed_after_a_change_of_folder(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with exclusive(Path("run.npz")):
        os.chdir("other")
    assert [file.name for file in tmp_path.iterdir()] == ["other"]
