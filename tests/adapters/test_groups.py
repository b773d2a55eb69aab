import pytest

import eigencurve as ec
from eigencurve.adapters.groups import distinct, first_schedule, ratios_of, schedules_of

F, G = ec.linear(5, 0.1), ec.cosine(5, 0.3)
GROUPS = [{"lr": 0.2, "name": "body"}, {"lr": 0.1, "name": "body"}, {"lr": 0.0, "name": "head"}]


def test_schedules_by_position_by_name_or_for_all():
    assert schedules_of("f", F, GROUPS) == [F, F, F]
    assert schedules_of("f", [F, G, None], GROUPS) == schedules_of("f", (F, G, None), GROUPS) == [F, G, None]
    assert schedules_of("f", {"head": None, "body": G}, GROUPS) == [G, G, None]
    assert first_schedule([None, G]) is G
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
