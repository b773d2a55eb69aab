import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import eigencurve as ec
from eigencurve._check import ArgumentValueError
from eigencurve.schedules import extend
from eigencurve.schedules.cooldown import SHAPES, spliced

LAW = ec.PowerLaw(1.5, 1e-3, 50.0)


def cooled(schedule, from_step, num_steps, shape):
    low = 1e-3 if shape in ("exponential", "inverse") else None
    return ec.cooldown(schedule, from_step, num_steps, shape, low, LAW if shape == "eigencurve" else None)


@pytest.mark.parametrize("shape", SHAPES)
@given(T=st.integers(1, 200), start=st.integers(0, 300), n=st.integers(1, 100))
def test_is_the_schedule_before_and_falls_from_its_rate_after(shape, T, start, n):
    f = ec.warmup(ec.inverse_sqrt(T, 0.5, timescale=50), 7)
    g = cooled(f, start, n, shape)
    values = g.values()
    assert g.total_steps == start + n
    assert_array_equal(values[:start], f(np.arange(start)))
    assert values[start] == f(start)
    assert (np.diff(values[start:]) < 0).all()


def test_shapes_are_those_of_the_schedules():
    hold = ec.constant(10, 0.3)
    for shape, tail in {
        "linear": ec.linear(40, 0.3), "cosine": ec.cosine(40, 0.3), "sqrt": ec.polynomial(40, 0.3, power=0.5),
        "1-sqrt": ec.wsd(40, 0.3, 40, tail="1-sqrt"), "eigencurve": ec.eigencurve(LAW, 40, 0.3),
    }.items():  # fmt: skip
        assert_array_equal(cooled(hold, 10, 40, shape).values()[10:], tail.values())
    assert_array_equal(ec.cooldown(hold, 60, 40).values(), ec.wsd(100, 0.3, 40).values())
    assert_array_equal(ec.cooldown(hold, 0, 40).values(), ec.linear(40, 0.3).values())


@given(st.integers(1, 50), st.integers(51, 90), st.integers(1, 20))
def test_branches_share_their_trunk(first, second, n):
    trunk = ec.warmup(ec.constant(1000, 0.1), 10)
    short, long = ec.cooldown(trunk, first, n), ec.cooldown(trunk, second, n)
    assert_array_equal(short.values()[:first], long.values()[:first])


def test_extend_holds_a_rate_that_has_not_decayed_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in (ec.constant(50, 0.1), ec.warmup(ec.constant(40, 0.1), 10), ec.linear(50, 0.1, 0.06)):
            g = extend(f, 80)
            assert g.total_steps == 80
            assert_array_equal(g.values(), f(np.arange(80)))


def test_extend_warns_of_a_decayed_rate_and_names_the_remedy():
    f = ec.cosine(500, 0.1)
    with pytest.warns(
        UserWarning, match=r"decayed to 9\.87e-07, 9\.9e-06 of its peak, and the 500 added.*rewarm=5.*again to 0\.1"
    ):
        g = extend(f, 1000)
    assert np.abs(np.diff(g.values())).max() <= np.abs(np.diff(f.values())).max()  # no jump


@given(added=st.integers(2, 60), rewarm=st.integers(1, 30), lr=st.sampled_from([None, 0.05]))
def test_a_rewarmup_rises_in_equal_steps_and_holds(added, rewarm, lr):
    f = ec.linear(40, 0.1)
    if rewarm >= added:
        with pytest.raises(ValueError, match=f"extend: 'rewarm' must be < {added}"):
            extend(f, 40 + added, rewarm=rewarm, lr=lr)
        return
    values = extend(f, 40 + added, rewarm=rewarm, lr=lr).values()
    top = 0.1 if lr is None else lr
    assert_array_equal(values[:40], f.values())
    assert_allclose(np.diff(values[39 : 41 + rewarm]), (top - values[39]) / (rewarm + 1))
    assert (values[40 + rewarm :] == top).all()


def test_splicing_warns_of_a_jump_only_from_a_decayed_rate():
    old, new = ec.cosine(100, 0.1), ec.cosine(200, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert spliced("f", old, new, 20, None) is new
        assert spliced("f", old, ec.cosine(101, 0.1), 90, None).total_steps == 101
    with pytest.warns(UserWarning, match=r"f: the rate jumps from 0\.00245 to 0\.0578 at step 90.*pass rewarm=1,"):
        assert spliced("f", old, new, 90, None) is new


def test_splicing_with_a_rewarmup_does_not_jump():
    old, new = ec.cosine(100, 0.1), ec.cosine(200, 0.1)
    values = spliced("f", old, new, 90, 30).values()
    assert_array_equal(values[:90], old.values()[:90])
    assert_allclose(np.diff(values[89:121])[1:], (new(120) - old(90)) / 31, rtol=1e-9)
    assert_array_equal(values[120:], new.values()[120:])


@pytest.mark.parametrize(
    ("call", "function", "argument"),
    [
        (lambda: ec.cooldown(ec.constant(5, 0.1), -1, 3), "cooldown", "from_step"),
        (lambda: ec.cooldown(ec.constant(5, 0.1), 1, 0), "cooldown", "num_steps"),
        (lambda: ec.cooldown(ec.constant(5, 0.1), 1, 3, "eigen"), "cooldown", "shape"),
        (lambda: ec.cooldown(ec.constant(5, 0.1), 1, 3, "eigencurve"), "cooldown", "spectrum"),
        (lambda: ec.cooldown(ec.constant(5, 0.1), 1, 3, spectrum=LAW), "cooldown", "spectrum"),
        (lambda: ec.cooldown(ec.constant(5, 0.1), 1, 3, min_lr=0.2), "cooldown", "min_lr"),
        (lambda: ec.cooldown(ec.step_decay(3000, 1.0, num_intervals=3000), 3000, 5), "cooldown", "schedule"),
        (lambda: extend(ec.constant(5, 0.1), 5), "extend", "total_steps"),
        (lambda: extend(ec.constant(5, 0.1), 9, lr=0.2), "extend", "lr"),
        (lambda: spliced("f", ec.constant(5, 0.1), ec.constant(9, 0.1), 9, None), "f", "schedule"),
        (lambda: spliced("f", ec.constant(5, 0.1), ec.constant(9, 0.1), 4, 5), "f", "rewarm"),
    ],
)
def test_bad_settings_are_refused(call, function, argument):
    with pytest.raises(ArgumentValueError) as error:
        call()
    assert (error.value.function, error.value.argument) == (function, argument)


def test_only_schedules_are_cooled_and_extended():
    for call in (lambda: ec.cooldown(0.1, 3, 3), lambda: extend(0.1, 3)):
        with pytest.raises(TypeError, match="'schedule' must be a Schedule"):
            call()
