"""Child processes that end with their parent and do not import from the current folder."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

LOOK_SECONDS = 0.5
SAFE_PATH = "PYTHONSAFEPATH"


def end_with_parent(parent: int) -> None:
    """End this process soon after the process ``parent``, which started it, has ended, even by kill -9.

    A thread looks every half second. Linux can send a signal instead, but sends it already when the thread of the
    parent that started the child has ended.
    """
    if os.getpid() != parent:
        threading.Thread(target=_watch, args=(parent,), name="end-with-parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(1)


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Keep the current folder out of the import path of Python processes that are started in the block.

    Otherwise ``python -m`` and ``python -c`` would import a ``queue.py`` that happens to be there.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(SAFE_PATH, None)
        else:
            os.environ[SAFE_PATH] = before
