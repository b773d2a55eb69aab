"""Keras 3 on its JAX backend."""

from tests.adapters.keras_driver import KerasDriver

DRIVER = KerasDriver("jax")
