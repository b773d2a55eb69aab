"""Driver of Keras for every backend; the loops run in a worker process."""

from importlib.util import find_spec

import pytest
from tests.adapters.contract import Driver
from tests.adapters.worker import Worker

from eigencurve import Schedule

BACKENDS = ("torch", "jax")
WORKERS = {backend: Worker("tests.adapters.keras_loops", KERAS_BACKEND=backend) for backend in BACKENDS}


def keras_worker(backend):
    """Worker of one backend, shared by all tests; skips the test if Keras or the backend is missing."""
    for name in ("keras", backend):
        if find_spec(name) is None:
            pytest.skip(f"could not import {name!r}", allow_module_level=True)
    return WORKERS[backend]


def called(name):
    """A method of the driver that calls the function of that name in the worker."""

    def method(self, *arguments):
        plain = [part.to_dict() if isinstance(part, Schedule) else part for part in arguments]
        return self.worker.call(name, *plain)

    return method


class KerasDriver(Driver):
    rtol = 2.0**-22
    skip = "not counted"
    rates = called("rates")
    rates_resumed = called("rates_resumed")
    rates_accumulating = called("rates_accumulating")
    rates_groups = called("rates_groups")
    rates_skipping = called("rates_skipping")
    rates_extended = called("rates_extended")

    def __init__(self, backend):
        self.name, self.worker = f"keras ({backend})", keras_worker(backend)
