"""Uploaded spectra and logs. They are parsed, never executed, and limited in size and number."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from threading import Lock

from eigencurve import _check
from eigencurve.forecast.formats.log import LogError
from eigencurve.planning.logs import LoadedRuns, LogSettings, read_runs
from eigencurve.spectrum.files import SUFFIX_WORDS, SUFFIXES
from eigencurve.spectrum.source import SpectrumSource, bytes_source
from eigencurve.studio.launch import MOST_MEGABYTES

# Largest number of eigenvalues, because a page of them redraws quickly, and of logs.
MOST_EIGENVALUES = 20_000
MOST_LOGS = 8
# Number of answers to keep, and for how many seconds.
PLANS_KEPT, SECONDS_KEPT = 16, 3600
# Recording warnings changes a setting of the whole process, so one thread reads at a time.
READING = Lock()


def uploaded_source(name: str, content: bytes, weight_decay: float | None = None) -> SpectrumSource:
    """Parse an uploaded spectrum.

    Raises:
        ValueError: If the file is too large, damaged, of another type, or has too many eigenvalues.
    """
    plain = _plain_name(name)
    suffix = PurePath(plain).suffix.lower()
    if suffix not in SUFFIXES:
        _check.refuse("upload", "file", f"one that ends in {SUFFIX_WORDS}", plain)
    _require_small(plain, content)
    source = bytes_source(content, suffix, plain, weight_decay)
    if len(source.spectrum) > MOST_EIGENVALUES:
        remedy = "Merge neighbouring eigenvalues; the schedule only depends on octaves."
        need = f"of at most {MOST_EIGENVALUES:,} eigenvalues"
        _check.refuse("upload", "file", need, f"{len(source.spectrum):,}", remedy)
    return source


def uploaded_runs(
    files: Sequence[tuple[str, bytes]], settings: LogSettings, name_of: Callable[[str], str] = _check.quoted
) -> LoadedRuns:
    """Read uploaded logs.

    Args:
        files: Name and content of every file.
        settings: How to read them.
        name_of: Spells the arguments of ``load_run`` that a warning mentions.

    Raises:
        ValueError: If there are too many files, or one is too large or not a log.
    """
    if len(files) > MOST_LOGS:
        _check.refuse("upload", "files", f"at most {MOST_LOGS}", len(files))
    for name, content in files:
        _require_small(name, content, "Keep every hundredth row: a fit needs no more.")
    with tempfile.TemporaryDirectory() as folder, READING:
        paths = [_written(Path(folder) / str(place), *file) for place, file in enumerate(files)]
        try:
            loaded = read_runs(paths, settings, name_of=name_of)
        except LogError as error:
            name = Path(str(error.value)).name
            raise LogError(error.function, error.argument, error.constraint, name, error.remedy) from None
    return LoadedRuns(loaded.runs, tuple(_without_folders(warning, paths) for warning in loaded.warnings))


def _without_folders(warning: str, paths: Sequence[Path]) -> str:
    """A warning with the name of the file in place of its path, which the person who uploaded it does not know."""
    for path in paths:
        warning = warning.replace(str(path), path.name)
    return warning


def _written(folder: Path, name: str, content: bytes) -> Path:
    """A file of that name in a folder of its own, because two uploads may have the same name."""
    folder.mkdir()
    path = folder / _plain_name(name)
    path.write_bytes(content)
    return path


def _plain_name(name: str) -> str:
    """The name of a file without the folders of the machine that sent it."""
    return PurePath(name.replace("\\", "/")).name or "file"


def _require_small(name: str, content: bytes, remedy: str = "") -> None:
    if len(content) > MOST_MEGABYTES << 20:
        size = f"{len(content) / (1 << 20):.1f} MB ({name})"
        _check.refuse("upload", "file", f"at most {MOST_MEGABYTES} MB", size, remedy)
