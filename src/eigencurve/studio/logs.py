"""Uploaded logs: read from a temporary folder, and limited in number and size."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePath
from threading import Lock

from eigencurve import _check
from eigencurve._check import ArgumentError
from eigencurve.planning.forecasts import LoadedRuns, LogSettings, read_runs
from eigencurve.studio.source import MOST_MEGABYTES

MOST_LOGS = 8
# Settings of the page for the arguments of load_run.
SETTINGS = {
    "loss": "“Loss column”",
    "lr": "“Learning-rate column”",
    "run": "the file of one run",
    "warmup_steps": "“Warmup steps”",
    "last_step": "“Last step”",
    "resumed": "“Resumed run”",
    "schedule": "'schedule' of load_run in Python",
}
# Recording warnings changes a setting of the whole process, so one thread reads at a time.
READING = Lock()


def read_logs(files: Sequence[tuple[str, bytes]], settings: LogSettings) -> LoadedRuns:
    """Read uploaded logs.

    Args:
        files: Name and content of every file.
        settings: How to read them.

    Raises:
        ValueError: If there are too many files, or one is too large or not a log. The message has the file's own name.
    """
    if len(files) > MOST_LOGS:
        _check.refuse("upload", "files", f"at most {MOST_LOGS}", len(files))
    for name, content in files:
        if len(content) > MOST_MEGABYTES << 20:
            size = f"{len(content) / (1 << 20):.1f} MB"
            remedy = "Keep every hundredth row: a fit needs no more."
            _check.refuse("upload", "file", f"at most {MOST_MEGABYTES} MB", f"{size} ({name})", remedy)
    with tempfile.TemporaryDirectory() as folder, READING:
        paths = [_written(Path(folder) / str(place), *file) for place, file in enumerate(files)]
        try:
            loaded = read_runs(paths, settings, name_of=SETTINGS.__getitem__)
        except ArgumentError as error:
            raise ValueError(_shown(error.sentence(SETTINGS.__getitem__), paths)) from None
        except OSError as error:
            raise ValueError(_shown(str(error), paths)) from None
        return LoadedRuns(loaded.runs, tuple(_shown(warning, paths) for warning in loaded.warnings))


def _written(folder: Path, name: str, content: bytes) -> Path:
    """A file of that name in a folder of its own, because two uploads may have the same name."""
    folder.mkdir()
    path = folder / (PurePath(name.replace("\\", "/")).name or "log")
    path.write_bytes(content)
    return path


def _shown(message: str, paths: Sequence[Path]) -> str:
    for path in paths:
        message = message.replace(str(path), path.name)
    return message
