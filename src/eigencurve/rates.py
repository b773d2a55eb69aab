"""Choosing a learning rate: the range test. It needs PyTorch."""

from eigencurve.adapters.range_curve import RangeTest
from eigencurve.adapters.range_test import range_test

__all__ = ["RangeTest", "range_test"]
