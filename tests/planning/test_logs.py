import pytest
from tests.forecast.published import gpt_runs
from tests.reference.forecast import logged, three_runs, two_peaks

import eigencurve as ec
from eigencurve.forecast import fit_runs
from eigencurve.planning.logs import choose, plan_from_logs


@pytest.fixture(scope="module")
def plan():
    return plan_from_logs(three_runs(), 2000, optimizer="adamw")


def test_the_choice_cannot_be_told_from_the_best(plan):
    assert plan[plan.name].loss <= plan.table.best.loss * 1.001
    assert plan[plan.name].excess == plan[plan.name].excess_high == 0
    assert plan.schedule.total_steps == 2000


def test_the_table_has_intervals(plan):
    assert {"cosine_0", "linear_0", "elastic_step", "constant", "optimum"} <= {row.name for row in plan.table.rows}
    assert all(row.low < row.loss < row.high for row in plan.table.rows)
    assert all(row.excess_low <= row.excess <= row.excess_high for row in plan.table.rows)


def test_it_says_what_it_is_based_on(plan):
    sources = {entry.name: entry.source for entry in plan.inputs}
    assert sources["curvature, noise and start"] == "fitted"
    assert sources["peak rate"] == "measured"
    assert plan.gap >= 0
    assert plan.evidence.kind == "forecast"
    assert "forecast loss" in plan.verdict


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ({"optimum": 2.0, "cosine_0": 2.001, "wsd_20": 2.0005}, "cosine_0"),
        ({"optimum": 2.0, "cosine_0": 2.01, "wsd_20": 2.001}, "wsd_20"),
        ({"optimum": 2.0, "cosine_0": 2.01, "constant": 2.0}, "optimum"),
        ({"optimum": -2.0, "cosine_0": -1.999}, "cosine_0"),
    ],
)
def test_the_rule_prefers_the_simplest_of_nearly_equal_schedules(losses, expected):
    rows = (ec.ComparisonRow(name, ec.linear(9, 0.1), loss=loss) for name, loss in losses.items())
    assert choose(ec.ComparisonTable(tuple(rows), "optimum")) == expected


def test_a_constant_run_gives_a_warning_and_the_run_to_add():
    warnings = plan_from_logs(logged(ec.constant(2000, 0.01)), 2000).warnings
    assert any("no information about decay" in sentence for sentence in warnings)
    assert any("decay linearly to 0" in sentence for sentence in warnings)


def test_another_peak_rate_is_marked():
    plan = plan_from_logs(three_runs(), 2000, max_lr=0.02)
    assert any("peak rate 0.02 is outside" in sentence for sentence in plan.warnings)
    assert {entry.name: entry.source for entry in plan.inputs}["peak rate"] == "given"
    with pytest.raises(ValueError, match="'max_lr' must be left out with logged runs if 'lr' is given"):
        plan_from_logs(three_runs(), 2000, lr=0.01, max_lr=0.02)


@pytest.mark.parametrize(("floor", "best"), [(1.5, 0.005), (3.0, 0.01)])
def test_it_chooses_among_the_logged_peak_rates(floor, best):
    low = [logged(schedule, floor=floor) for schedule in (ec.constant(2000, 0.005), ec.linear(2000, 0.005))]
    plan = plan_from_logs([*low, *two_peaks()[0.01]], 2000)
    assert plan.lr == plan.schedule.values().max() == pytest.approx(best)
    assert f"Use a peak rate of {best:g}; of the logged rates it has the lowest forecast" in plan.verdict


def test_the_published_gpt_runs_should_hold_and_decay_late(data_path):
    plan = plan_from_logs(fit_runs(gpt_runs(data_path, "100M")[0]), 24_000, optimizer="adamw")
    assert plan.name == "wsd_20"
    assert plan["cosine_0"].excess_low > 0
