"""Whether a file is a log or a spectrum, by its content."""

from __future__ import annotations

import re
from pathlib import Path

from eigencurve.forecast.columns import STEPS, is_loss, is_rate, step_name
from eigencurve.forecast.formats.delimited import SEPARATORS
from eigencurve.forecast.formats.entries import HISTORY
from eigencurve.forecast.formats.events import looks_like_events

# The part of a file that is looked at.
HEAD = 2**16
ARCHIVE = b"PK"
# A name in JSON, and the names that only a spectrum has.
NAME = re.compile(r'"([^"\\]+)"\s*:')
SPECTRUM_NAMES = ("eigenvalues", "weights")
SPECTRUM_FORMAT = "eigencurve.spectrum"
# File names that say spectrum if the content says nothing.
SPECTRUM_SUFFIXES = (".npz", ".json", ".txt")


def is_log(path: Path) -> bool:
    """Whether a file or folder is the log of a run, as opposed to a spectrum.

    The content decides. If it says nothing, as in an empty or missing file, the name does.
    """
    if path.is_dir():
        return True
    if path.is_file():
        with path.open("rb") as file:
            answer = _by_content(file.read(HEAD))
        if answer is not None:
            return answer
    return path.suffix.lower() not in SPECTRUM_SUFFIXES


def _by_content(head: bytes) -> bool | None:
    """Whether the beginning of a file is that of a log; None if it is neither a log nor a spectrum."""
    if head.startswith(ARCHIVE):
        return False
    if looks_like_events(head):
        return True
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    if text[:1] in ("{", "["):
        names = {name.lower() for name in NAME.findall(text)}
        if HISTORY not in names and (names.intersection(SPECTRUM_NAMES) or SPECTRUM_FORMAT in text):
            return False
        return True if any(name in (*STEPS, HISTORY) or is_loss(name) or is_rate(name) for name in names) else None
    return _has_columns(text.split("\n", 1)[0]) if text else None


def _has_columns(line: str) -> bool | None:
    """Whether a first line names the columns of a log; None if it holds neither names nor numbers."""
    if line.startswith("#"):
        return False
    cells = [cell.strip().strip('"') for cell in re.split(f"[{SEPARATORS}]", line)]
    metrics = [cell.rpartition(" - ")[2] for cell in cells]
    if step_name(metrics) is not None or any(is_loss(name) or is_rate(name) for name in metrics):
        return True
    return False if re.fullmatch(r"[\s\d.eE+,;-]+", line) and len(line.split()) == 2 else None
