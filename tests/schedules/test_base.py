"""The base classes; test_contract.py tests what holds for every schedule."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import eigencurve as ec
from eigencurve.schedules.base import Schedule, between, require_schedule
from eigencurve.schedules.decays import DecayToMinimum


@dataclass(frozen=True, eq=False)
class Squared(DecayToMinimum):
    kind: ClassVar[str] = "squared"

    def _weight(self, progress):
        return (1 - progress) ** 2


def test_a_subclass_needs_only_its_curve():
    f = Squared(4, lr=1.6, min_lr=0.0)
    assert_array_equal(f.values(), [1.6, 0.9, 0.4, 0.1])
    assert f.to_dict() == {"kind": "squared", "version": 1, "total_steps": 4, "lr": 1.6, "min_lr": 0.0}
    assert f == Squared(4, 1.6)
    assert f != ec.linear(4, 1.6)
    with pytest.raises(ValueError, match=r"squared: 'min_lr' must be <= lr = 1"):
        Squared(4, lr=1.0, min_lr=2.0)


@pytest.mark.parametrize("cls", [Schedule, DecayToMinimum])
def test_abstract_classes_cannot_be_made(cls):
    with pytest.raises(TypeError, match="abstract"):
        cls(4, 1.0)


@given(lr=st.floats(1e-6, 1e3), ratio=st.floats(0, 1))
def test_between_has_exact_ends(lr, ratio):
    assert_array_equal(between(np.array([1.0, 0.0]), lr, lr * ratio), [lr, lr * ratio])


def test_the_factor_is_relative_to_the_first_step():
    f = ec.warmup(ec.constant(5, lr=0.3), 2)
    assert f.factor(0) == 1.0
    assert f.factor(4) == pytest.approx(3.0)
    assert_array_equal(f.factor(np.arange(7)), f.values() / f(0))


def test_require_schedule_names_the_function_and_the_argument():
    f = ec.constant(3, 0.1)
    assert require_schedule("train", f) is f
    with pytest.raises(TypeError, match=r"train: 'schedule' must be a Schedule, got 0\.1\."):
        require_schedule("train", 0.1)
    with pytest.raises(TypeError, match="train: 'second' must be a Schedule, got None"):
        require_schedule("train", None, argument="second")


def test_a_preview_fits_on_a_small_terminal():
    f = ec.cosine(100, 0.1)
    assert f.preview() == f.preview(width=64, height=12)
