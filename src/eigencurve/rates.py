"""The former place of :func:`eigencurve.adapters.range_test.range_test`."""

from typing import Any

from eigencurve._moved import moved

_NAMES = ("RangeTest", "range_test")


def __getattr__(name: str) -> Any:
    """Import a name from its new place, with a DeprecationWarning."""
    if name in _NAMES:
        return moved(f"eigencurve.rates.{name}", f"eigencurve.adapters.range_test.{name}")
    raise AttributeError(f"module 'eigencurve.rates' has no attribute {name!r}")
