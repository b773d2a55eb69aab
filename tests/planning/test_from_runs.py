import pytest
from tests.forecast.published import gpt_runs
from tests.reference.forecast import logged, three_runs, two_peaks

import eigencurve as ec
from eigencurve.forecast import fit_runs
from eigencurve.planning.from_runs import SEARCHED, plan_from_forecast
from eigencurve.planning.training import Training


@pytest.fixture(scope="module")
def plan():
    return plan_from_forecast(fit_runs(three_runs()), 2000, Training("adamw"))


def test_the_choice_cannot_be_told_from_the_best(plan):
    best = min(row.loss for row in plan.table)
    assert plan[plan.name].loss <= best * 1.001
    assert plan[plan.name].behind == plan[plan.name].behind_high == 0
    assert plan.schedule.total_steps == 2000


def test_the_table_has_intervals(plan):
    assert {"cosine to 0", "linear to 0", "elastic step", "constant", SEARCHED} <= {row.name for row in plan.table}
    assert all(row.low < row.loss < row.high for row in plan.table)
    assert all(row.behind_low <= row.behind <= row.behind_high for row in plan.table)


def test_it_says_what_it_is_based_on(plan):
    sources = {known.name: known.source for known in plan.inputs}
    assert sources["curvature, noise and start"] == "fitted"
    assert sources["peak rate"] == "measured"
    assert plan.gap >= 0
    assert "forecast loss" in plan.verdict


def test_a_constant_run_gives_a_doubt_and_the_run_to_add():
    plan = plan_from_forecast(fit_runs(logged(ec.constant(2000, 0.01))), 2000, Training("sgd"))
    assert any("no information about decay" in note for note in plan.notes)
    assert any("decay linearly to 0" in note for note in plan.notes)


def test_another_peak_rate_is_marked():
    plan = plan_from_forecast(fit_runs(three_runs()), 2000, Training("sgd"), max_lr=0.02)
    assert any("peak rate 0.02 is outside" in note for note in plan.notes)
    assert {known.name: known.source for known in plan.inputs}["peak rate"] == "given"


@pytest.mark.parametrize(("floor", "best"), [(1.5, 0.005), (3.0, 0.01)])
def test_it_chooses_among_the_logged_peak_rates(floor, best):
    low = [logged(f, floor=floor) for f in (ec.constant(2000, 0.005), ec.linear(2000, 0.005))]
    plan = plan_from_forecast(fit_runs([*low, *two_peaks()[0.01]]), 2000, Training("sgd"))
    assert plan.schedule.values().max() == pytest.approx(best)
    assert f"Use a peak rate of {best:g}; of the logged rates it has the lowest forecast" in plan.verdict


def test_the_published_gpt_runs_should_hold_and_decay_late(data_path):
    plan = plan_from_forecast(fit_runs(gpt_runs(data_path, "100M")[0]), 24_000, Training("adamw"))
    assert plan.name == "WSD, last 20 %"
    assert plan["cosine to 0"].behind_low > 0
