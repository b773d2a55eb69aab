"""Progress bars with the time left, drawn on a terminal only."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress


def new_bar(enabled: bool, *notes: ProgressColumn) -> RichProgress:
    """A bar with what is done, ``notes``, and the time left, on standard error if that is a terminal."""
    console = Console(stderr=True)
    first, last = (TextColumn("{task.description}"), BarColumn()), (TimeElapsedColumn(), TimeRemainingColumn())
    shown = enabled and console.is_terminal
    return RichProgress(*first, MofNCompleteColumn(), *notes, *last, console=console, disable=not shown)


class Progress:
    """Counts of a running search, drawn on standard error if that is a terminal.

    Args:
        title: Text in front of the bar.
        total: Number of runs.
        enabled: Whether to draw anything.
    """

    def __init__(self, title: str, total: int, enabled: bool) -> None:
        self._bar = new_bar(enabled, TextColumn("running {task.fields[running]}, failed {task.fields[failed]}"))
        self._task = self._bar.add_task(title, total=total, running=0, failed=0)
        self._running = self._failed = 0

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, done: int | None = None, started: int = 0, finished: int = 0, failed: int = 0) -> None:
        """Set the number of finished runs, or count runs that started, finished or failed."""
        self._running += started - finished - failed
        self._failed += failed
        if done is not None:
            self._running = 0
            self._bar.update(self._task, completed=done)
        self._bar.update(self._task, advance=finished, running=self._running, failed=self._failed)


def show_status(text: str, enabled: bool) -> None:
    """Print a line about what happens next on standard error."""
    if enabled:
        Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)
