"""Keras 3 on its torch backend."""

from tests.adapters.keras_driver import KerasDriver

DRIVER = KerasDriver("torch")
