"""Progress of a training run: a bar on the terminal, and numbers for TensorBoard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from paper.engine.progress import new_bar


@contextmanager
def epoch_log(folder: Path | None) -> Iterator[Callable[[int, Mapping[str, float]], None]]:
    """Write numbers for TensorBoard; call the result with the number of epochs done and what was measured then.

    Nothing is written if ``folder`` is None, or if TensorBoard is not installed.
    """
    writer = None if folder is None else _summary_writer(folder)

    def write(epoch: int, numbers: Mapping[str, float]) -> None:
        if writer is not None:
            for name, number in numbers.items():
                writer.add_scalar(name, number, epoch)

    with writer or nullcontext():
        yield write


@contextmanager
def step_bar(shown: bool, total: int) -> Iterator[Callable[[int], None]]:
    """Draw a bar of steps on standard error if that is a terminal; call the result with the number of steps done."""
    with new_bar(shown) as bar:
        task = bar.add_task("steps", total=total)
        yield lambda done: bar.update(task, completed=done)


def _summary_writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder))
