"""The checkpoint of a training run: one file, written atomically and loaded without executing code from it."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import nn

from paper import checks
from paper.files import write_atomically

FORMAT = "eigencurve.training"
VERSION = 1
# The exceptions that zipfile and torch.load may raise on damaged bytes.
DAMAGE = (
    AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError, pickle.UnpicklingError,
    zipfile.BadZipFile,
)  # fmt: skip


def identity_of(settings: list[Any], model: nn.Module) -> str:
    """A hash of the settings and of the names, shapes and types of the model's tensors."""
    shapes = [(name, list(tensor.shape), str(tensor.dtype)) for name, tensor in model.state_dict().items()]
    return hashlib.sha256(json.dumps([settings, shapes], sort_keys=True).encode()).hexdigest()


@contextmanager
def checkpoint_for(folder: Path | None, key: str) -> Iterator[Path | None]:
    """The path of a run's checkpoint in ``folder``; None without a folder.

    When the block ends without an error, all files of the run (``key`` and any suffix) are removed.
    """
    yield None if folder is None else folder / f"{key}.pt"
    for file in () if folder is None else folder.iterdir():
        if file.name.startswith(f"{key}."):
            file.unlink(missing_ok=True)


class TrainingCheckpoint:
    """The file that holds the state of one run; ``torch.load(path, weights_only=True)`` reads it.

    Args:
        path: Path of the file.
        identity: Identity of the run; a checkpoint with another identity is refused.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self.path, self.identity = Path(path), identity

    def save(self, state: dict[str, Any]) -> None:
        """Write the state, replacing the file atomically."""
        buffer = io.BytesIO()
        torch.save({"format": FORMAT, "version": VERSION, "identity": self.identity, **state}, buffer)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, buffer.getvalue())

    def load(self) -> dict[str, Any] | None:
        """The saved state, or None if there is no file yet.

        Raises:
            ValueError: The file is truncated, damaged or belongs to another run. It is left unchanged.
        """
        if not self.path.exists():
            return None
        try:
            content = io.BytesIO(self.path.read_bytes())
            _require_checksums(content)
            state = torch.load(content, map_location="cpu", weights_only=True)
        except DAMAGE as error:
            self._refuse(
                "a complete checkpoint of a training run", next(iter(str(error).splitlines()), type(error).__name__)
            )
        if not isinstance(state, dict) or (state.get("format"), state.get("version")) != (FORMAT, VERSION):
            self._refuse(f"of format {FORMAT!r}, version {VERSION}", "a file of another kind")
        if state["identity"] != self.identity:
            self._refuse("of this run", "that of a run with other settings, seed, model or number of processes")
        return state

    def _refuse(self, constraint: str, found: str) -> NoReturn:
        remedy = f"The file {self.path.name} is unchanged: move it away, or pass another path."
        checks.refuse("train", "checkpoint", constraint, found, remedy)


def _require_checksums(content: io.BytesIO) -> None:
    """Compare the parts of the file with their checksums, which PyTorch writes but does not read."""
    with zipfile.ZipFile(content) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged} does not match its checksum")
    content.seek(0)
