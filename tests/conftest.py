import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, so that a change is the only reason for a failure; `make test-random` draws new ones.
# No deadlines: they would be assertions about a clock.
settings.register_profile("deterministic", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile("deterministic")

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
