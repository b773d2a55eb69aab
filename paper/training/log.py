"""Progress of a training run: a bar on the terminal, and numbers for TensorBoard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class EpochLog:
    """Writes the numbers of each epoch for TensorBoard.

    Args:
        folder: Folder for the logs. If it is None, or TensorBoard is not installed, nothing is written.
    """

    def __init__(self, folder: Path | None) -> None:
        self._writer = None if folder is None else _summary_writer(folder)

    def __enter__(self) -> EpochLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, epoch: int, numbers: Mapping[str, float]) -> None:
        """Write the numbers measured after ``epoch`` epochs."""
        if self._writer is not None:
            for name, number in numbers.items():
                self._writer.add_scalar(name, number, epoch)


@contextmanager
def step_bar(shown: bool, total: int) -> Iterator[Callable[[int], None]]:
    """Draw a bar of steps on standard error if that is a terminal; call the result with the number of steps done."""
    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield lambda _done: None
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    )  # fmt: skip
    with RichProgress(*columns, console=console) as bar:
        task = bar.add_task("steps", total=total)
        yield lambda done: bar.update(task, completed=done)


def _summary_writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder))
