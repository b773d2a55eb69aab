"""Fetching a file once, and only if it is the file that was meant."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.request
from pathlib import Path

from eigencurve._files import write_atomically

TIMEOUT_SECONDS = 60.0


def fetch(url: str, path: str | os.PathLike[str], sha256: str) -> Path:
    """``path``, downloaded from ``url`` where it is missing.

    A file that is there already is checked too. The download appears under its name only when it is complete and
    its SHA-256 is the one given.

    Raises:
        ConnectionError: no answer from the address.
        ValueError: the file, or what came, is another one; a file that was there is left as it is.
    """
    target = Path(path)
    if target.exists():
        _require(target.read_bytes(), sha256, f"the file {target}")
        return target
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
    except (http.client.HTTPException, OSError) as error:
        raise ConnectionError(f"fetch: {url} cannot be reached ({error}). Download it by hand to {target}.") from error
    _require(content, sha256, f"what came from {url}")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, content)
    return target


def _require(content: bytes, sha256: str, what: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ValueError(f"fetch: 'sha256' must be that of {what}: expected {sha256}, got {found}.")
