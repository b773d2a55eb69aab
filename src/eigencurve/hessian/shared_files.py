"""Files of several processes, one for each, that are replaced together or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from eigencurve._files import companion, companions, write_atomically
from eigencurve.hessian.space import Space

State = TypeVar("State")
Progress = tuple[int, int]
# The endings of all files of all processes.
PARTS = r"\.part-\d+-of-(\d+)(?:\..*)?"


def next_path(path: Path) -> Path:
    """Path of a new file that will replace ``path`` once all processes have written theirs."""
    return companion(path, ".next")


def replace_together(space: Space, path: Path, content: bytes) -> None:
    """Write ``content`` to ``path``, so that a kill at any time leaves a state that all processes have.

    No process replaces its old file before all have written their new one to disk, so after a kill all processes have
    the old file, or all have the new one, under one of its two names.
    """
    if not space.is_shared:
        write_atomically(path, content)
        return
    write_atomically(next_path(path), content)
    space.wait()
    os.replace(next_path(path), path)
    space.wait()


def newest_common(
    space: Space, path: Path, states: Mapping[Progress, State], refuse: Callable[[str, str], None]
) -> State | None:
    """The newest state that all processes have on disk; None if there was no complete save yet.

    ``states`` belong to this process, by their progress. ``refuse`` is called with a constraint and the actual
    state if processes have states, but none in common.
    """
    offers = space.gather((path.exists(), set(states)))
    common = set.intersection(*(progress for _, progress in offers))
    if common:
        return states[max(common)]
    missing = [str(rank) for rank, (_, progress) in enumerate(offers) if not progress]
    if any(saved for saved, _ in offers):
        refuse("complete, with a file of every process", f"files without a common step (none of {', '.join(missing)})")
    return None


def require_number_of_parts(path: Path, own: Path, refuse: Callable[[str, str], None]) -> None:
    """Call ``refuse`` if ``path`` was saved by another number of processes than those that now use ``own``."""
    if own == path:
        return
    number = own.name.rpartition("-of-")[2]
    others = sorted({match[1] for _, match in companions(path, PARTS)} - {number})
    if others or path.exists():
        refuse(f"of {number} processes", f"a checkpoint of {others[0]} processes" if others else "one of whole vectors")
