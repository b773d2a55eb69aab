"""Downloads: a file is fetched once, and kept only if its checksum is right."""

from __future__ import annotations

import hashlib
import http.client
import os
import tarfile
import urllib.request
import zlib
from collections.abc import Iterable
from pathlib import Path

from paper.files import write_atomically

TIMEOUT_SECONDS = 60.0


def fetch(url: str, path: str | os.PathLike[str], digest: str, algorithm: str = "sha256") -> Path:
    """Download ``url`` to ``path`` unless the file exists, and check its digest either way.

    The file appears at ``path`` only when it is complete and has the given digest.

    Raises:
        ConnectionError: The address did not answer.
        ValueError: The digest is wrong. An existing file is left unchanged.
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
    _require(content, digest, algorithm, f"the download from {url}")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, content)
    return target


def _require(content: bytes, digest: str, algorithm: str, what: str) -> None:
    found = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
    if found != digest:
        raise ValueError(f"fetch: '{algorithm}' must be that of {what}: expected {digest}, got {found}.")


def extract_files(archive: str | os.PathLike[str], folder: str | os.PathLike[str], names: Iterable[str]) -> None:
    """Extract the files ``names`` from a tar archive to the same names in ``folder``.

    Nothing else is written, so paths inside the archive are never trusted.

    Raises:
        ValueError: The archive is damaged, or one of the files is missing or not a regular file.
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
        raise tarfile.TarError(f"{name} is not a regular file")
    return file.read()
