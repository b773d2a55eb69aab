import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# A deadline is an assertion about a clock.
settings.register_profile("eigencurve", deadline=None)
settings.load_profile("eigencurve")

# A command put in the background ignores Ctrl-C, and so would all that the tests start to interrupt.
with contextlib.suppress(ValueError):  # not the main thread
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data_path() -> Callable[[str], Path]:
    """Look a file up under EIGENCURVE_DATA; skip the test, saying so, where it is missing."""

    def find(name: str) -> Path:
        folder = os.environ.get("EIGENCURVE_DATA")
        if not folder:
            pytest.skip("EIGENCURVE_DATA names no folder with the real data")
        path = Path(folder) / name
        if not path.exists():
            pytest.skip(f"{name} is not in the folder that EIGENCURVE_DATA names")
        return path

    return find
