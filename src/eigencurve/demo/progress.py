"""What the demo does, and how long it still takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


def show_status(text: str, shown: bool) -> None:
    """Print a line about what happens next on standard error."""
    if shown:
        Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def steps_bar(title: str, total: int, shown: bool) -> Iterator[Callable[[], None]]:
    """A bar of training steps with the time left, drawn on standard error if that is a terminal.

    Call the yielded function after each step.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not (shown and console.is_terminal)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)
