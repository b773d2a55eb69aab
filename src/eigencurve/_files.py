"""Atomic file writes, files next to a given one, and a lock for files that one process at a time may use."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

# The most bytes of a file name on the usual file systems, and of an ending that is appended to an abbreviated name.
NAME_BYTES = 255
ENDING_BYTES = 64


def write_atomically(path: Path, content: bytes) -> None:
    """Write ``content`` to a temporary file next to ``path``, flush it to disk, and rename it to ``path``.

    If ``path`` is a link, the file that it points to is written. If anything fails, an existing file stays unchanged
    and the temporary file is removed.
    """
    path = path.resolve() if path.is_symlink() else path
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{_with_room(path.name)}.", suffix=".part")
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


def companion(path: Path, ending: str) -> Path:
    """Path of a file next to ``path``: its name and ``ending``.

    If that is longer than file systems allow, the name is abbreviated, with a hash of the whole name.

    >>> companion(Path("run.npz"), ".lock").name
    'run.npz.lock'
    >>> companion(Path("r" * 255), ".lock").name.lstrip("r")
    '~8b38a09971bac840.lock'
    """
    name = f"{path.name}{ending}"
    return path.with_name(name if _size(name) <= NAME_BYTES else f"{_abbreviated(path.name)}{ending}")


def companions(path: Path, endings: str) -> list[tuple[Path, re.Match[str]]]:
    """The files next to ``path`` that :func:`companion` names, with the match of their endings.

    Args:
        path: Path of the file; its name is taken literally.
        endings: Regular expression that a whole ending matches.
    """
    pattern = re.compile(endings)
    found = []
    for file in path.parent.iterdir() if path.parent.is_dir() else ():
        for head in (path.name, _abbreviated(path.name)):
            match = pattern.fullmatch(file.name, len(head)) if file.name.startswith(head) else None
            if match and companion(path, match[0]) == file:
                found.append((file, match))
    return found


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock of ``path``, an empty file next to it, until the block ends or the process dies.

    A link and the file that it points to have the same lock. On Windows nothing is locked.

    Raises:
        BlockingIOError: Another process holds the lock.
    """
    if sys.platform == "win32":
        yield
        return
    lock = companion(path.resolve(), ".lock")
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


def _with_room(name: str) -> str:
    """``name``, or its abbreviation if an ending would make it too long."""
    return name if _size(name) <= NAME_BYTES - ENDING_BYTES else _abbreviated(name)


def _abbreviated(name: str) -> str:
    """The beginning of ``name`` and a hash of all of it, short enough for every ending."""
    mark = f"~{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"
    head = name[:NAME_BYTES]
    while _size(head) > NAME_BYTES - ENDING_BYTES - len(mark):
        head = head[:-1]
    return f"{head}{mark}"


def _size(name: str) -> int:
    return len(os.fsencode(name))


def _umask() -> int:
    """The file mode mask of the process, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def json_bytes(fields: Any) -> bytes:
    """Encode plain values as JSON with a final newline. NaN and infinity raise ValueError."""
    return (json.dumps(fields, indent=1, allow_nan=False) + "\n").encode()
