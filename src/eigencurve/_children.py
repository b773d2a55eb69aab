"""Child processes that end with their parent."""

from __future__ import annotations

import os
import threading
import time

LOOK_SECONDS = 0.5


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
