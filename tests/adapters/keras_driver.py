"""Driver of Keras for every backend; the loops run in a worker process."""

from importlib.util import find_spec

import pytest
from tests.adapters.contract import Driver
from tests.adapters.worker import Worker

BACKENDS = ("torch", "jax")
WORKERS = {backend: Worker("tests.adapters.keras_loops", KERAS_BACKEND=backend) for backend in BACKENDS}


def keras_worker(backend):
    """Worker of one backend, shared by all tests; skips the test if Keras or the backend is missing."""
    for name in ("keras", backend):
        if find_spec(name) is None:
            pytest.skip(f"could not import {name!r}", allow_module_level=True)
    return WORKERS[backend]


class KerasDriver(Driver):
    rtol = 2.0**-22
    skip = "not counted"

    def __init__(self, backend):
        self.name, self.worker = f"keras ({backend})", keras_worker(backend)

    def rates(self, schedule, num_steps):
        return self.worker.call("rates", schedule=schedule.to_dict(), num_steps=num_steps)

    def rates_resumed(self, schedule, num_steps, stop_at):
        return self.worker.call("rates_resumed", schedule=schedule.to_dict(), num_steps=num_steps, stop_at=stop_at)

    def rates_accumulating(self, schedule, num_updates, accumulation):
        return self.worker.call(
            "rates_accumulating", schedule=schedule.to_dict(), num_updates=num_updates, accumulation=accumulation
        )

    def rates_groups(self, schedule, num_steps, ratios):
        return self.worker.call("rates_groups", schedule=schedule.to_dict(), num_steps=num_steps, ratios=ratios)

    def rates_skipping(self, schedule, num_steps, skipped):
        return self.worker.call("rates_skipping", schedule=schedule.to_dict(), num_steps=num_steps, skipped=skipped)

    def rates_extended(self, schedule, longer, num_steps, at):
        return self.worker.call(
            "rates_extended", schedule=schedule.to_dict(), longer=longer.to_dict(), num_steps=num_steps, at=at
        )
