"""Schedules by name; test_contract.py tests the round trip of every schedule."""

import pytest
from tests.schedules.test_contract import ALL, LAW

import eigencurve as ec
from eigencurve._check import ArgumentValueError
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.eigencurve import curve_of
from eigencurve.schedules.kinds import (
    FACTORIES,
    KINDS,
    describe_settings,
    own_settings,
    schedule_of_kind,
    settings_of,
    usual_settings,
)

CURVE = {"kind": "eigencurve", "version": 1, "total_steps": 3, "lr": 1.0, "times": [0, 3], "denominators": [1, 2]}
CONSTANT = {"kind": "constant", "version": 1, "total_steps": 3, "lr": 0.1}


def subclasses(cls):
    for child in cls.__subclasses__():
        yield child
        yield from subclasses(child)


def test_every_concrete_schedule_can_be_restored():
    concrete = {cls for cls in subclasses(Schedule) if not cls.__abstractmethods__}
    assert set(KINDS.values()) == {cls for cls in concrete if cls.__module__.startswith("eigencurve.")}
    assert all(cls.kind == kind for kind, cls in KINDS.items())


def test_lists_become_tuples_and_nested_dictionaries_schedules():
    f = ec.warmup(ec.schedules.join([ec.multistep(9, 1.0, [2, 4]), ec.linear(3, 0.5)]), 2)
    settings = f.to_dict()
    assert settings["schedule"]["schedules"][0]["milestones"] == [2, 4]
    assert ec.schedule_from_dict(settings).schedule.schedules[0].milestones == (2, 4)


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"kind": "sine", "version": 1}, "kind"),
        ({}, "kind"),
        ({"kind": ["cosine"], "version": 1}, "kind"),
        ({**CONSTANT, "version": 2}, "version"),
        ({"kind": "constant", "version": 1, "total_steps": 3}, "settings"),
        ({**CONSTANT, "os": "x"}, "settings"),
        ({**CONSTANT, "total_steps": 0}, "total_steps"),
        ({**CURVE, "times": [0, 2]}, "times"),
        ({**CURVE, "denominators": [1, 0.5]}, "denominators"),
        ({**CURVE, "denominators": [1]}, "times"),
    ],
)
def test_foreign_settings_are_refused(settings, argument):
    with pytest.raises(ArgumentValueError) as error:
        ec.schedule_from_dict(settings)
    assert error.value.argument == argument


def test_settings_must_be_a_dict():
    with pytest.raises(TypeError, match="'settings' must be a dict"):
        ec.schedule_from_dict([1])


def test_the_message_about_a_long_name_is_short():
    with pytest.raises(ValueError, match="must be exactly those of 'cosine'") as caught:
        ec.schedule_from_dict({**ec.cosine(10, 0.1).to_dict(), "x" * 5000: 1})
    assert len(str(caught.value)) < 600


def test_every_kind_is_the_public_function_of_its_name():
    for kind, factory in FACTORIES.items():
        assert getattr(ec, kind) is factory or (kind == "eigencurve" and factory is curve_of)


def test_warmup_counts_in_the_run():
    f = schedule_of_kind("cosine", 100, 0.1, warmup_steps=10, min_lr=0.01)
    assert f == ec.warmup(ec.cosine(90, 0.1, 0.01), 10)
    assert schedule_of_kind("rex", 100, 0.1, warmup_steps=10, warmup_shape="cosine") == ec.warmup(
        ec.rex(90, 0.1), 10, shape="cosine"
    )
    wsd = schedule_of_kind("wsd", 100, 0.1, warmup_steps=10, decay_steps=20)
    assert wsd.values() == pytest.approx(ec.wsd(100, 0.1, decay_steps=20, warmup_steps=10).values())


def test_eigencurve_is_made_from_the_spectrum():
    assert schedule_of_kind("eigencurve", 50, 0.1, LAW, beta=1.5) == ec.eigencurve(LAW, 50, 0.1, beta=1.5)
    assert settings_of("eigencurve") == {"min_lr": False, "beta": False, "allocation": False, "rounding": False}
    assert settings_of("exponential") == {"min_lr": True}


def test_own_settings_are_those_that_the_kind_takes():
    every = {"min_lr": 0.01, "beta": None, "allocation": "sqrt", "alpha": 2.0, "r": 0.5, "epochs": 3}
    assert own_settings("eigencurve", every) == {"min_lr": 0.01, "allocation": "sqrt"}
    assert own_settings("elastic_step", every) == {"r": 0.5}
    assert own_settings("constant", every) == {}
    with pytest.raises(ValueError, match="'kind' must be one of"):
        own_settings("cosin", every)


@pytest.mark.parametrize("kind", FACTORIES)
@pytest.mark.parametrize("total_steps", [1, 4, 1000])
def test_usual_settings_complete_every_kind_that_has_them(kind, total_steps):
    usual = usual_settings(kind, 0.1)
    required = {name for name, needed in settings_of(kind).items() if needed}
    assert set(usual) == (set() if kind in ("multistep", "hold_then_decay") else required)
    if set(usual) == required:
        assert schedule_of_kind(kind, total_steps, 0.1, LAW, **usual).total_steps == total_steps


@pytest.mark.parametrize(
    ("kind", "settings", "argument"),
    [
        ("cosin", {}, "kind"),
        ("cosine", {"alpha": 1.0}, "alpha"),
        ("multistep", {}, "milestones"),
        ("eigencurve", {}, "spectrum"),
        ("cosine", {"warmup_steps": 50}, "warmup_steps"),
        ("cosine", {"warmup_steps": -1}, "warmup_steps"),
    ],
)
def test_wrong_settings_are_refused(kind, settings, argument):
    with pytest.raises(ArgumentValueError) as error:
        schedule_of_kind(kind, 50, 0.1, **settings)
    assert error.value.argument == argument


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (ec.constant(100, 0.1), "-"),
        (ec.exponential(100, 0.1, 1e-4), "min_lr=0.0001"),
        (ec.step_decay(100, 0.1), "num_intervals=6, factor=2"),
        (ec.multistep(100, 0.1, [30, 60]), "milestones=30/60, factor=10"),
        (ec.elastic_step(100, 0.1, r=2**-0.5), "r=0.7071"),
        (ec.piecewise(100, [0, 99], [0.1, 0.0]), "2 knots"),
        (ec.eigencurve(LAW, 100, 0.1), "16 intervals"),
        (ec.eigencurve(LAW, 100, 0.1, min_lr=0.001), "16 intervals, min_lr=0.001"),
        (
            ec.one_cycle(100, 0.1),
            "pct_start=0.3, div_factor=25, final_div_factor=1e+04, anneal=cosine, three_phase=False",
        ),
        (ec.warmup(ec.cosine(2000, 0.1), 50, "cosine"), "50 steps of cosine warmup, 2,000 of cosine (min_lr=0)"),
        (
            ec.wsd_cycles(100, 0.1, 2, tail="1-sqrt"),
            "40 steps of constant, 10 of one_minus_power (min_lr=0, power=0.5), "
            "40 of constant, 10 of one_minus_power (min_lr=0, power=0.5)",
        ),
        (ec.over_tokens(ec.cosine(9, 0.1), 900, 100), "9 steps of cosine (min_lr=0) over tokens"),
        (ec.cooldown(ec.constant(9, 0.1), 60, 40), "60 steps of constant, 40 of linear (min_lr=0)"),
    ],
)
def test_settings_are_named_as_the_arguments_of_the_function(schedule, text):
    assert describe_settings(schedule) == text


@pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())
def test_every_schedule_has_one_line(make):
    assert "\n" not in describe_settings(make(100, 0.1))
    assert "total_steps" not in describe_settings(make(100, 0.1))
