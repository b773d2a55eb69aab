import warnings

import numpy as np
import pytest

import eigencurve as ec
from eigencurve.adapters.groups import NUM_AHEAD, RateReader, distinct, ratios_of, schedules_of, warn_of_length

F, G = ec.linear(5, 0.1), ec.cosine(5, 0.3)
GROUPS = [{"lr": 0.2, "name": "body"}, {"lr": 0.1, "name": "body"}, {"lr": 0.0, "name": "head"}]


def test_schedules_by_position_by_name_or_for_all():
    assert schedules_of("f", F, GROUPS) == [F, F, F]
    assert schedules_of("f", [F, G, None], GROUPS) == schedules_of("f", (F, G, None), GROUPS) == [F, G, None]
    assert schedules_of("f", {"head": None, "body": G}, GROUPS) == [G, G, None]
    assert distinct({"a": None, "b": F}) == distinct(F) == distinct([None, F]) == [F]


def test_only_groups_that_share_a_schedule_keep_their_ratio():
    assert ratios_of("f", F, GROUPS) == [1.0, 0.5, 0.0]
    assert ratios_of("f", [F, F, F], GROUPS) == [1.0, 1.0, 1.0]
    assert ratios_of("f", {"body": F, "head": None}, GROUPS) == [1.0, 0.5, 1.0]
    assert ratios_of("f", F, [{"lr": 0.01, "initial_lr": 0.2}, {"lr": 0.3, "initial_lr": 0.1}]) == [1.0, 0.5]


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        (0.1, TypeError, "f: 'schedule' must be a Schedule, a list with one per parameter group, or a mapping"),
        ("body", TypeError, "a list with one per parameter group"),
        ([F, 0.1, None], TypeError, "'schedule' must be a Schedule, got 0.1"),
        ([F, G], ValueError, "'schedule' must be a list of 3, one per parameter group, got '2 of them'"),
        ([None, None, None], ValueError, "a Schedule for at least one group"),
        ({"body": F, "heed": G}, ValueError, "got 'heed'. Did you mean 'head'"),
        ({"body": F, "xyz": G}, ValueError, r"got 'xyz'. The groups are \['body', 'head'\]"),
        ({"body": F}, ValueError, r"given for the groups \['head'\], got \['body'\]. None keeps the rate"),
    ],
)
def test_wrong_schedules_are_refused(given, error, match):
    with pytest.raises(error, match=match):
        schedules_of("f", given, GROUPS)


def test_names_need_named_groups_and_ratios_a_positive_rate():
    with pytest.raises(ValueError, match=r"a list, because not every group has a name.* Name each group"):
        schedules_of("f", {"body": F}, [{"lr": 0.1}])
    for given in (F, {"head": F}):
        with pytest.raises(ValueError, match="one whose first group has a rate > 0, got"):
            ratios_of("f", given, GROUPS[2:])


@pytest.mark.parametrize("schedule", [ec.cosine(1000, 0.1), ec.eigencurve(ec.PowerLaw(1.5, 1e-3, 10.0), 1000, 0.1)])
def test_a_reader_has_the_rates_of_the_schedule_in_any_order(schedule):
    read, other = RateReader(), ec.linear(1000, 0.2)
    steps = [*range(600), *range(2000, 0, -7), 0, NUM_AHEAD - 1, NUM_AHEAD, 10**6]
    assert [read(schedule, step) for step in steps] == [schedule(step) for step in steps]
    assert [read(f, 10) for f in (schedule, other, schedule)] == [schedule(10), other(10), schedule(10)]


def test_rates_are_plain_floats_computed_ahead():
    calls = []

    class Counted(ec.Schedule):
        kind = "counted"

        def _rates(self, steps):
            calls.append(len(steps))
            return np.full(len(steps), 0.1)

    read, schedule = RateReader(), Counted(10_000, 0.1)
    rates = [read(schedule, step) for step in range(3 * NUM_AHEAD)]
    assert calls == [NUM_AHEAD] * 3
    assert {type(rate) for rate in rates} == {float}


def test_the_right_length_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_length("f", {"a": ec.linear(10, 0.1), "b": None}, 10, "")


@pytest.mark.parametrize(("length", "effect"), [(8, "the last 2 steps keep"), (12, "training ends before")])
def test_another_length_is_reported_once_for_all_groups(length, effect):
    with pytest.warns(UserWarning, match=f"{length} steps, but the trainer takes 10: {effect}.*Do this") as caught:
        warn_of_length("f", [ec.linear(length, 0.1), None, ec.cosine(length, 0.1), ec.cosine(10, 0.1)], 10, "Do this.")
    assert len(caught) == 1
