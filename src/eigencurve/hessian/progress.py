"""A progress bar for a terminal, and nothing anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

Advance = Callable[[int], None]


class ProductsPerSecond(ProgressColumn):
    """How fast products come."""

    def render(self, task: Task) -> Text:
        """For example ``1.8 products/s``."""
        speed = task.finished_speed or task.speed
        return Text("- products/s" if speed is None else f"{speed:.3g} products/s")


@contextmanager
def progress_bar(shown: bool, total: int, title: str, console: Console | None = None) -> Iterator[Advance]:
    """Show steps, products per second and time left on standard error; call the result with the steps done.

    Silent unless ``shown`` and standard error is a terminal.
    """
    screen = Console(stderr=True) if console is None else console
    if not (shown and screen.is_terminal):
        yield lambda _done: None
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), ProductsPerSecond(), TimeRemainingColumn()
    )  # fmt: skip
    with Progress(*columns, console=screen) as bar:
        screen.print(title, highlight=False)
        task = bar.add_task("Lanczos", total=total)
        yield lambda done: bar.update(task, completed=done)
