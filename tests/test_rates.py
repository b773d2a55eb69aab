import pytest

pytest.importorskip("torch")

from eigencurve import rates
from eigencurve.adapters import range_test


@pytest.mark.parametrize("name", ["RangeTest", "range_test"])
def test_the_old_place_names_the_new_one(name):
    with pytest.warns(DeprecationWarning, match=f"use eigencurve.adapters.range_test.{name}"):
        assert getattr(rates, name) is getattr(range_test, name)
