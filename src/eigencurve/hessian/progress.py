"""A progress bar that shows up on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class Advance(Protocol):
    """Report progress."""

    def __call__(self, done: int, note: Callable[[], str] | None = None) -> None:
        """Show the number of steps done, and a note in front of the bar. A hidden bar does not compute the note."""


class ProductsPerSecond(ProgressColumn):
    """Speed in products per second."""

    def render(self, task: Task) -> Text:
        """The text of the column, such as ``1.8 products/s``."""
        speed = task.finished_speed or task.speed
        return Text("- products/s" if speed is None else f"{speed:.3g} products/s")


@contextmanager
def progress_bar(shown: bool, total: int, title: str, console: Console | None = None) -> Iterator[Advance]:
    """Show a progress bar on standard error, with products per second and the time left.

    Call the yielded function with the number of steps done, and with a note to show in front of the bar. Nothing is
    shown unless ``shown`` is true and standard error is a terminal.
    """
    screen = Console(stderr=True) if console is None else console
    if not (shown and screen.is_terminal):
        yield _ignore
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=15), MofNCompleteColumn(), ProductsPerSecond(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=screen) as bar:
        screen.print(title, highlight=False)
        task = bar.add_task("Lanczos", total=total)

        def advance(done: int, note: Callable[[], str] | None = None) -> None:
            bar.update(task, completed=done, description=None if note is None else note())

        yield advance


def _ignore(done: int, note: Callable[[], str] | None = None) -> None:
    """Report progress to nobody."""
