import pytest
from tests.schedules.test_contract import ALL, LAW

import eigencurve as ec
from eigencurve.schedules.settings import describe_settings


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
