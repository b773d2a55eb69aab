"""Arrays from .npz archives of any origin: no code is executed, and a small file cannot fill the memory."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import Any

import numpy as np

# Bytes that a small archive may unpack to.
MOST_UNPACKED = 256 << 20
KINDS = "biufU"
PLAIN_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The exceptions that zipfile and NumPy may raise on damaged bytes.
DAMAGE = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError, TypeError,
    ValueError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class ArchiveError(ValueError):
    """The bytes are not an archive of plain arrays, or unpack to too much."""


def read_arrays(content: bytes, most_unpacked: int = MOST_UNPACKED) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an .npz archive by name: real numbers, booleans and text, never pickled objects.

    Args:
        content: Bytes of the archive.
        most_unpacked: Bytes that the archive may unpack to, unless the archive itself is larger.

    Raises:
        ArchiveError: The archive is damaged, encrypted, compressed in an unusual way or too large, or holds something
            else. The message is one line.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _require_plain(archive.infolist(), max(most_unpacked, len(content)))
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found = {name: np.asarray(arrays[name]) for name in arrays.files}
    except ArchiveError:
        raise
    except DAMAGE as error:
        raise ArchiveError(" ".join(str(error).split()) or type(error).__name__) from None
    for name, values in found.items():
        if values.dtype.kind not in KINDS:
            raise ArchiveError(f"{name!r} holds {values.dtype}, not real numbers or text")
    return found


def _require_plain(members: list[zipfile.ZipInfo], most_unpacked: int) -> None:
    for member in members:
        if member.flag_bits & 1:
            raise ArchiveError("the archive is encrypted")
        if member.compress_type not in PLAIN_COMPRESSION:
            raise ArchiveError(f"the compression of {member.filename!r} is not the one of NumPy")
    size = sum(member.file_size for member in members)
    if size > most_unpacked:
        limit = f"{most_unpacked / (1 << 20):.0f} MB unpacked"
        raise ArchiveError(f"the archive must be at most {limit}, got {size / (1 << 20):.1f} MB")
