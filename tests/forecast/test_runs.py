import dataclasses
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import eigencurve as ec
from eigencurve.forecast import LoggedRun
from eigencurve.forecast.runs import tabulated

STEPS = np.arange(10, 101, 10)
LOSSES = np.linspace(4.0, 2.0, 10)
COSINE = ec.cosine(100, lr=0.1)


def test_holds_what_it_was_given():
    run = LoggedRun(STEPS, LOSSES, COSINE, name="a", metric="val_loss")
    assert_array_equal(run.steps, STEPS)
    assert_array_equal(run.losses, LOSSES)
    assert_array_equal(run.rates, COSINE.values())
    assert (run.schedule, run.name, run.metric, run.total_steps, run.peak_lr) == (COSINE, "a", "val_loss", 100, 0.1)
    assert len(run) == 10
    assert repr(run) == (
        "LoggedRun(a: 10 losses (val_loss), 4 at step 10 to 2 at step 100; Cosine(total_steps=100, lr=0.1, min_lr=0.0))"
    )


def test_is_frozen_and_does_not_share_its_arrays():
    steps, losses = STEPS.copy(), LOSSES.copy()
    run = LoggedRun(steps, losses, COSINE)
    steps[0], losses[0] = 0, 99.0
    assert (run.steps[0], run.losses[0]) == (10, 4.0)
    for array in (run.steps, run.losses, run.rates):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.name = "b"
    assert dataclasses.replace(run, name="b").name == "b"


def test_survives_pickling():
    run = pickle.loads(pickle.dumps(LoggedRun(STEPS, LOSSES, COSINE, name="a")))
    assert_array_equal(run.losses, LOSSES)
    assert run.schedule == COSINE


def test_the_loss_before_training_and_a_longer_schedule_are_allowed():
    run = LoggedRun([0, *STEPS[:-1]], LOSSES, ec.constant(1000, lr=0.1))
    assert (run.steps[0], run.total_steps) == (0, 1000)


@given(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3]), min_size=100, max_size=120).filter(any))
def test_an_array_of_rates_becomes_a_serialisable_schedule(rates):
    run = LoggedRun(STEPS, LOSSES, rates)
    assert_array_equal(run.rates, rates)
    back = ec.schedule_from_dict(json.loads(json.dumps(run.schedule.to_dict())))
    assert_array_equal(back.values(), rates)


def test_a_staircase_needs_few_knots():
    rates = ec.multistep(10_000, lr=0.1, milestones=[3000, 6000]).values()
    schedule = tabulated(rates)
    assert len(schedule.knots) == 6
    assert_array_equal(schedule.values(), rates)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"steps": STEPS[::-1]}, r"'steps' must be increasing, got 90 after 100 \(position 1\). Sort the log by step"),
        ({"steps": [10, 20, 20, *STEPS[3:]]}, r"'steps' must be increasing, got 20 after 20 \(position 2\)"),
        ({"steps": [-1, *STEPS[1:]]}, r"'steps' must be >= 0, got -1. Count the completed optimizer steps"),
        ({"steps": STEPS * 10**9}, r"'steps' must be <= 1,000,000,000.*Count optimizer steps, not tokens"),
        ({"steps": STEPS[:7]}, r"'steps' must be 8 logged losses or more, got 7. Log the loss more often"),
        ({"losses": LOSSES[:9]}, r"'losses' must be as long as 'steps' \(10\), got shape \(9,\)"),
        (
            {"losses": [*LOSSES[:9], np.nan]},
            r"'losses' must be finite, got nan. It is the loss of step 100: a run that",
        ),
        ({"losses": [np.inf, *LOSSES[1:]]}, r"'losses' must be finite, got inf. It is the loss of step 10:"),
        ({"schedule": ec.cosine(99, lr=0.1)}, r"'schedule' must be at least as long as the log, 100 steps, got 99"),
        ({"schedule": np.ones(99)}, r"'schedule' must be at least as long as the log, 100 steps"),
        ({"schedule": np.zeros(100)}, r"'schedule' must be above 0 at one step or more, got 100 rates of 0"),
        ({"schedule": [0.1, -0.2] * 50}, r"'schedule' must be rates >= 0, got -0.2. It is the rate of step 1"),
        ({"schedule": [np.nan] * 100}, r"'schedule' must be finite"),
    ],
)
def test_refuses_a_bad_log(change, match):
    arguments = {"steps": STEPS, "losses": LOSSES, "schedule": COSINE} | change
    with pytest.raises(ValueError, match="LoggedRun: " + match):
        LoggedRun(**arguments)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"steps": STEPS / 1.0}, "'steps' must be a sequence of integers"),
        ({"steps": ["a"] * 10}, "'steps' must be a sequence of integers"),
        ({"losses": ["a"] * 10}, "'losses' must be a sequence of real numbers"),
        ({"schedule": "cosine"}, "'schedule' must be a sequence of real numbers"),
    ],
)
def test_refuses_wrong_types(change, match):
    arguments = {"steps": STEPS, "losses": LOSSES, "schedule": COSINE} | change
    with pytest.raises(TypeError, match="LoggedRun: " + match):
        LoggedRun(**arguments)
