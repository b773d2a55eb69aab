"""The state of a training run in one file, written in one step and read without running anything in it."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import nn

from eigencurve import _check
from eigencurve._files import write_atomically

FORMAT = "eigencurve.training"
VERSION = 1


def identity_of(settings: list[Any], model: nn.Module) -> str:
    """Equal for runs of equal settings on models of equal shape only."""
    shapes = [(name, list(tensor.shape), str(tensor.dtype)) for name, tensor in model.state_dict().items()]
    return hashlib.sha256(json.dumps([settings, shapes], sort_keys=True).encode()).hexdigest()


class TrainingCheckpoint:
    """A file that holds how far one run is; ``torch.load(path, weights_only=True)`` reads it.

    Args:
        path: of the file.
        identity: of the run.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self.path, self.identity = Path(path), identity

    def save(self, state: dict[str, Any]) -> None:
        """Replace the file."""
        buffer = io.BytesIO()
        torch.save({"format": FORMAT, "version": VERSION, "identity": self.identity, **state}, buffer)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, buffer.getvalue())

    def load(self) -> dict[str, Any] | None:
        """The saved state, or None where there is no file yet.

        Raises:
            ValueError: a file that is truncated, damaged or of another run. It is left as it is.
        """
        if not self.path.exists():
            return None
        try:
            state = torch.load(io.BytesIO(self.path.read_bytes()), map_location="cpu", weights_only=True)
        except (RuntimeError, pickle.UnpicklingError, EOFError, OSError, ValueError, KeyError) as error:
            self._refuse(
                "a complete checkpoint of a training run", next(iter(str(error).splitlines()), type(error).__name__)
            )
        if not isinstance(state, dict) or (state.get("format"), state.get("version")) != (FORMAT, VERSION):
            self._refuse(f"of format {FORMAT!r}, version {VERSION}", "a file of another kind")
        if state["identity"] != self.identity:
            self._refuse("of this run", "that of a run with other settings, seed, model or number of processes")
        return state

    def discard(self) -> None:
        """Remove the file, when the run's outcome is safe elsewhere."""
        self.path.unlink(missing_ok=True)

    def _refuse(self, constraint: str, found: str) -> NoReturn:
        remedy = f"The file {self.path.name} is left as it is: move it away, or give another path."
        _check.refuse("train", "checkpoint", constraint, found, remedy)
