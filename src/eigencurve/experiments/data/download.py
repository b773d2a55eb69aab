"""Fetching a file once, and only if it is the file that was meant."""

from __future__ import annotations

import hashlib
import http.client
import os
import tarfile
import urllib.request
import zlib
from collections.abc import Iterable
from pathlib import Path

from eigencurve._files import write_atomically

TIMEOUT_SECONDS = 60.0


def fetch(url: str, path: str | os.PathLike[str], digest: str, algorithm: str = "sha256") -> Path:
    """``path``, downloaded from ``url`` where it is missing.

    A file that is there already is checked too. The download appears under its name only when it is complete and
    its digest is the one given.

    Args:
        url: where it is published.
        path: where it shall lie.
        digest: of the content, in hexadecimal digits.
        algorithm: of the digest, as hashlib names it: the one with which the publisher gives it.

    Raises:
        ConnectionError: no answer from the address.
        ValueError: the file, or what came, is another one; a file that was there is left as it is.
    """
    target = Path(path)
    if target.exists():
        _require(target.read_bytes(), digest, algorithm, f"the file {target}")
        return target
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
    except (http.client.HTTPException, OSError) as error:
        raise ConnectionError(f"fetch: {url} cannot be reached ({error}). Download it by hand to {target}.") from error
    _require(content, digest, algorithm, f"what came from {url}")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, content)
    return target


def _require(content: bytes, digest: str, algorithm: str, what: str) -> None:
    found = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
    if found != digest:
        raise ValueError(f"fetch: '{algorithm}' must be that of {what}: expected {digest}, got {found}.")


def extract_files(archive: str | os.PathLike[str], folder: str | os.PathLike[str], names: Iterable[str]) -> None:
    """Take the files ``names`` out of a tar archive, under the same names in ``folder``; nothing else is written.

    Only what the caller names is written, so no path that the archive makes up is ever followed.

    Raises:
        ValueError: the archive is damaged, or one of the files is missing in it or not a plain file.
    """
    try:
        with tarfile.open(archive) as tar:
            contents = {name: _content(tar, name) for name in names}
    except (KeyError, tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"extract_files: 'archive' must be a whole tar archive, got {archive} ({error}).") from error
    for name, content in contents.items():
        target = Path(folder) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, content)


def _content(tar: tarfile.TarFile, name: str) -> bytes:
    member = tar.getmember(name)
    file = tar.extractfile(member) if member.isfile() else None
    if file is None:
        raise tarfile.TarError(f"{name} is not a plain file")
    return file.read()
