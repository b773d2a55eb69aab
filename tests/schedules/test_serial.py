"""Restoring schedules and rejecting invalid settings; test_contract.py tests the round trip of every schedule."""

import pytest

import eigencurve as ec
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.serial import KINDS


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
    ("settings", "match"),
    [
        ({"kind": "sine", "version": 1}, "'kind' must be one of constant, "),
        ({}, "'kind' must be one of"),
        ({"kind": ["cosine"], "version": 1}, "'kind' must be one of"),
        ({"kind": "constant", "version": 2, "total_steps": 3, "lr": 0.1}, "'version' must be 1, got 2"),
        ({"kind": "constant", "version": 1, "total_steps": 3}, "exactly those of 'constant'"),
        ({"kind": "constant", "version": 1, "total_steps": 3, "lr": 0.1, "os": "x"}, "exactly those of 'constant'"),
        ({"kind": "constant", "version": 1, "total_steps": 0, "lr": 0.1}, "'total_steps' must be >= 1"),
        (
            {"kind": "eigencurve", "version": 1, "total_steps": 3, "lr": 1.0, "times": [0, 2], "denominators": [1, 2]},
            "'times' must be increasing from 0 to total_steps = 3",
        ),
        (
            {
                "kind": "eigencurve",
                "version": 1,
                "total_steps": 3,
                "lr": 1.0,
                "times": [0, 3],
                "denominators": [1, 0.5],
            },
            "'denominators' must be non-decreasing",
        ),
        (
            {"kind": "eigencurve", "version": 1, "total_steps": 3, "lr": 1.0, "times": [0, 3], "denominators": [1]},
            "'times' must be as long as",
        ),
    ],
)
def test_refuses_foreign_settings(settings, match):
    with pytest.raises(ValueError, match=match):
        ec.schedule_from_dict(settings)


def test_settings_must_be_a_dict():
    with pytest.raises(TypeError, match="'settings' must be a dict"):
        ec.schedule_from_dict([1])


def test_the_message_about_a_long_name_is_short():
    with pytest.raises(ValueError, match="must be exactly those of 'cosine'") as caught:
        ec.schedule_from_dict({**ec.cosine(10, 0.1).to_dict(), "x" * 5000: 1})
    assert len(str(caught.value)) < 600
