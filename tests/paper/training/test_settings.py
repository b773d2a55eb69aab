import math

import numpy as np
import pytest
from tests.paper.images.examples import SPECTRUM

from eigencurve import (
    constant,
    cosine,
    cosine_power,
    eigencurve,
    elastic_step,
    inverse_time,
    linear,
    multistep,
    step_decay,
    warmup,
    wsd,
)
from eigencurve.spectrum import prepare
from eigencurve.theory.quadratic import NoisyQuadratic
from paper.training.settings import (
    best_schedule,
    make_schedule,
    num_intervals,
    points_of,
    through_points,
)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"schedule": "inverse_time", "min_lr": 0.01}, inverse_time(60, 0.3, 0.01)),
        ({"schedule": "cosine", "min_lr": 0.001}, cosine(60, 0.3, 0.001)),
        ({"schedule": "cosine_power", "min_lr": 0.0, "alpha": 2.0}, cosine_power(60, 0.3, 0.0, 2.0)),
        ({"schedule": "elastic_step", "r": 0.5}, elastic_step(60, 0.3, 0.5)),
        ({"schedule": "step_decay", "intervals": "log T", "factor": 2.0}, step_decay(60, 0.3)),
        ({"schedule": "step_decay", "intervals": 3, "factor": 10.0}, step_decay(60, 0.3, 3, 10.0)),
        ({"schedule": "wsd", "decay_share": 0.25}, wsd(60, 0.3, 15)),
        ({"schedule": "wsd", "decay_share": 0.001}, wsd(60, 0.3, 1)),
        ({"schedule": "linear", "warmup_steps": 10}, warmup(linear(50, 0.3), 10)),
        ({"schedule": "multistep", "milestones": [2, 4], "factor": 10.0}, multistep(60, 0.3, [20, 40])),
    ],
)
def test_settings_name_a_schedule(more, expected):
    assert make_schedule({"lr": 0.3, "epochs": 6, **more}, 60, {}) == expected


def test_points_are_joined_by_straight_lines():
    chosen = {"schedule": "points", "lr": 0.3, "points": [[0.0, 1.0], [0.5, 0.4], [1.0, 0.0]]}
    found = make_schedule(chosen, 61, {})
    assert found(np.array([0, 15, 30, 45, 60])) == pytest.approx([0.3, 0.21, 0.12, 0.06, 0.0], abs=1e-12)
    assert make_schedule(chosen, 1, {}).values() == pytest.approx([0.3])


@pytest.mark.parametrize("schedule", [cosine(2_000, 0.3), wsd(1_600, 0.3, 320), step_decay(30, 0.1), constant(1, 2.0)])
def test_points_describe_a_schedule(schedule):
    again = through_points(points_of(schedule), schedule.total_steps, schedule.lr)
    assert np.abs(again.values() - schedule.values()).max() < 0.02 * schedule.lr  # kinks between two knots


def test_points_stretch_to_other_lengths():
    points = points_of(linear(2_000, 0.3))
    assert through_points(points, 1_600, 0.3).values() == pytest.approx(linear(1_600, 0.3).values(), abs=1e-3)


def test_eigencurve_is_that_of_the_named_spectrum():
    chosen = {
        "schedule": "eigencurve",
        "spectrum": "a",
        "lr": 0.3,
        "min_lr": None,
        "beta": 2.0,
        "weight_decay": 5e-4,
    }
    prepared = prepare(SPECTRUM, 5e-4)
    assert make_schedule(chosen, 60, {"a": SPECTRUM}) == eigencurve(prepared, 60, 0.3)
    assert make_schedule(chosen | {"min_lr": 0.0}, 60, {"a": SPECTRUM})(59) == 0.0


def test_the_best_one_has_the_best_expected_loss_and_the_given_rate():
    prepared = prepare(SPECTRUM, 5e-4)
    found = best_schedule(prepared, 60, 0.3)
    assert found.values().max() == pytest.approx(0.3)
    problem = NoisyQuadratic(prepared)
    top = problem.optimal_schedule(60, 1 / prepared.L).values()
    assert np.allclose(found.values() / 0.3, top / top.max(), atol=1e-9)


def test_unknown_ones_are_refused():
    with pytest.raises(ValueError, match=r"'kind' must be one of 'eigencurve', .*, got 'magic'"):
        make_schedule({"schedule": "magic", "lr": 1.0}, 10, {})


def test_log_t():
    assert num_intervals("log T", 3_910) == math.floor(math.log2(3_910)) == 11
    assert num_intervals(4, 3_910) == 4
