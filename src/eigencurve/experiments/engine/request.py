"""What a user may say about how a table is made, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from eigencurve.experiments.engine.workers import Workers
from eigencurve.runs.store import Store


class Report(Protocol):
    """What an entry gives back: a page to write and values to print."""

    def text(self, command: str) -> str:
        """The page, in Markdown."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""

    def write(self, folder: Path, store: Store, command: str) -> Path:
        """Write the page and its figures."""


@dataclass(frozen=True)
class Request:
    """What a user may say about how a table is made.

    Attributes:
        store: where finished runs are kept.
        workers: who runs.
        data: a file or folder to use in place of the paper's.
        download: whether the paper's data may be fetched.
        epochs: budgets to run; empty for the scale's.
        progress: whether to draw a progress bar.
        scale: of the deep-learning tables: ``"paper"``, ``"laptop"`` or ``"smoke"``.
    """

    store: Store
    workers: Workers = field(default_factory=Workers)
    data: Path | None = None
    download: bool = False
    epochs: Sequence[int] = ()
    progress: bool = False
    scale: str = "paper"
