import pytest

pytest.importorskip("torch")

from eigencurve import rates
from eigencurve.adapters import range_curve, range_test


def test_the_range_test_is_there():
    assert rates.range_test is range_test.range_test
    assert rates.RangeTest is range_curve.RangeTest
    assert set(rates.__all__) == {"RangeTest", "range_test"}
