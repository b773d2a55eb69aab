import warnings

import pytest

import eigencurve as ec
from eigencurve.adapters.lengths import warn_of_length, warn_of_no_measurement


def test_the_right_length_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_length("f", ec.linear(10, 0.1), 10, "")
        warn_of_length("f", {"a": ec.linear(10, 0.1), "b": None}, 10, "")


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (8, "has 8 steps, but the trainer takes 10: the last 2 steps keep the schedule's last rate. Do this."),
        (12, "has 12 steps, but the trainer takes 10: training ends before .* Do this."),
    ],
)
def test_another_length_is_reported_once_for_all_groups(length, text):
    with pytest.warns(UserWarning, match="f: the schedule " + text) as caught:
        warn_of_length("f", [ec.linear(length, 0.1), None, ec.cosine(length, 0.1), ec.cosine(10, 0.1)], 10, "Do this.")
    assert len(caught) == 1


def test_a_measurement_beyond_the_run_names_the_last_epoch():
    with pytest.warns(
        UserWarning, match=r"at_epoch=5 is beyond the run, which has 3 epochs .*never measured.* at_epoch <= 2"
    ):
        warn_of_no_measurement(5, 3)
