"""Atomic file writes, and a lock for files that one process at a time may use."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl


def write_atomically(path: Path, content: bytes) -> None:
    """Write ``content`` to a temporary file next to ``path``, flush it to disk, and rename it to ``path``.

    If ``path`` is a link, the file that it points to is written. If anything fails, an existing file stays unchanged
    and the temporary file is removed.
    """
    path = path.resolve() if path.is_symlink() else path
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock of ``path``, an empty file next to it, until the block ends or the process dies.

    On Windows nothing is locked.

    Raises:
        BlockingIOError: Another process holds the lock.
    """
    if sys.platform == "win32":
        yield
        return
    lock = path.with_name(f"{path.name}.lock")
    handle = _locked(lock)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


def _locked(lock: Path) -> int:
    """An open, locked file at ``lock``; one that its last holder has removed meanwhile is opened again."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.stat(lock), os.fstat(handle)):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _umask() -> int:
    """The file mode mask of the process, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
