"""Worker processes that end with the process that started them."""

from __future__ import annotations

import os
import threading
import time

LOOK_SECONDS = 0.5


def end_with_parent(parent: int) -> None:
    """End this process soon after the process ``parent``, which started it, has ended, even by kill -9."""
    if os.getpid() != parent:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(1)
