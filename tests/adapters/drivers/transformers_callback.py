"""The Trainer of transformers with its own scheduler, which ScheduleCallback overrides."""

import pytest

pytest.importorskip("transformers")

from tests.adapters.drivers.transformers import TransformersDriver


class CallbackDriver(TransformersDriver):
    name = "transformers, callback"
    skip = "counted"
    callback = True


DRIVER = CallbackDriver()
