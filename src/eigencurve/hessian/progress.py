"""A progress bar that shows up on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

Advance = Callable[[int], None]


class ProductsPerSecond(ProgressColumn):
    """Speed in products per second."""

    def render(self, task: Task) -> Text:
        """The text of the column, such as ``1.8 products/s``."""
        speed = task.finished_speed or task.speed
        return Text("- products/s" if speed is None else f"{speed:.3g} products/s")


@contextmanager
def progress_bar(shown: bool, total: int, title: str, console: Console | None = None) -> Iterator[Advance]:
    """Show a progress bar on standard error, with products per second and the time left.

    Call the yielded function with the number of steps done. Nothing is shown unless ``shown`` is true and standard
    error is a terminal.
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
