import pytest
from tests.forecast.published import gpt_runs
from tests.planning.logged import CONSTANT, COSINE, LR, RISE, STEPS, log_text, losses_of, runs, write_logs
from tests.reference.forecast import logged, three_runs, two_peaks

import eigencurve as ec
from eigencurve.forecast import fit_runs
from eigencurve.forecast.forecast import RunEnd
from eigencurve.planning.logs import (
    SHAPES,
    USUAL,
    LogSettings,
    choose,
    choose_rate,
    forecast_usual,
    plan_from_logs,
    read_runs,
)  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    return plan_from_logs(three_runs(), 2000, optimizer="adamw")


def test_the_choice_is_the_reference_of_the_table(plan):
    assert plan.name in SHAPES
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
    ("excess", "low", "expected"),
    [
        (0.0, 0.0, "linear_0"),  # nothing is forecast to be better
        (0.004, -0.001, "linear_0"),  # not clear
        (0.004, 0.001, "wsd_20"),  # outside the interval
        (0.006, -0.01, "wsd_20"),  # above 0.5 % of the loss
    ],
)
def test_another_shape_must_be_clearly_better_than_linear(excess, low, expected):
    rows = [ec.ComparisonRow(name, ec.linear(9, 0.1), excess=0.2) for name in SHAPES]
    rows[SHAPES.index("linear_0")] = ec.ComparisonRow(
        "linear_0", ec.linear(9, 0.1), excess=excess, excess_low=low, excess_high=0.1
    )
    for name, behind in (("wsd_20", 0.0005), ("wsd_40", 0.0)):  # equal, so the first of them
        rows[SHAPES.index(name)] = ec.ComparisonRow(name, ec.wsd(9, 0.1, 2), excess=behind)
    assert choose(ec.ComparisonTable(tuple(rows), "wsd_40")) == expected


def test_shapes_that_do_not_decay_to_zero_are_shown_and_not_chosen(plan):
    assert {"constant", "cosine_10", "optimum"} <= {row.name for row in plan.table.rows}
    assert not {"constant", "cosine_10", "optimum"} & set(SHAPES)


@pytest.mark.parametrize(
    ("ends", "total_steps", "expected"),
    [
        ([(0.1, 1000, 2.0), (0.2, 1000, 1.9)], 1000, (0.2, 0.2)),
        ([(0.1, 1000, 2.0), (0.2, 1000, 1.9)], 2000, (0.2, 0.2 / 2**0.5)),
        ([(0.1, 1000, 2.0), (0.2, 1000, 1.9)], 500, (0.2, 0.2)),  # not raised for a shorter run
        ([(0.1, 1000, 1.9), (0.2, 1000, 2.0)], 10**6, (0.1, 0.05)),  # at most half the lowest logged rate
        ([(0.1, 1000, 2.0), (0.2, 100, 1.0)], 1000, (0.1, 0.1)),  # a much shorter run is no comparison
    ],
)
def test_the_rate_is_that_of_the_run_that_ended_lowest_and_falls_with_the_length(ends, total_steps, expected):
    assert choose_rate([RunEnd(*end) for end in ends], total_steps) == pytest.approx(expected)


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


@pytest.mark.parametrize(("floor", "best", "edge"), [(1.5, 0.005, "lowest"), (3.0, 0.01, "highest")])
def test_it_takes_the_logged_peak_rate_that_ended_lowest(floor, best, edge):
    low = [logged(schedule, floor=floor) for schedule in (ec.constant(2000, 0.005), ec.linear(2000, 0.005))]
    plan = plan_from_logs([*low, *two_peaks()[0.01]], 2000)
    assert plan.lr == plan.schedule.values().max() == pytest.approx(best)
    assert f"the run at {best:g} ended lowest" in plan.verdict
    assert any(f"best logged rate is the {edge} one" in sentence for sentence in plan.warnings)
    longer = plan_from_logs([*low, *two_peaks()[0.01]], 4000)
    assert longer.lr == pytest.approx(best / 2**0.5)
    assert longer.schedule.values().max() == pytest.approx(longer.lr)


def test_the_published_gpt_runs_should_hold_and_decay_late(data_path):
    plan = plan_from_logs(fit_runs(gpt_runs(data_path, "100M")[0]), 24_000, optimizer="adamw")
    assert plan.name == "wsd_20"
    assert plan["cosine_0"].excess_low > 0


@pytest.fixture(scope="module")
def usual():
    return forecast_usual(fit_runs(runs()), best=True)


def test_the_defaults_of_a_forecast_are_those_of_the_logs(usual):
    assert (usual.total_steps, usual.peak_lr, usual.warmup_steps) == (STEPS, LR, RISE)
    assert {row.name for row in usual.table.rows} == {*USUAL, "optimum"}
    assert usual.table["cosine_0"].label == "cosine to 0"
    exact = losses_of(COSINE, [STEPS])[0]
    assert usual.table["cosine_0"].loss == pytest.approx(exact, abs=0.02)  # the error of a fit to two runs
    assert usual.table["optimum"].schedule == usual.best.schedule


def test_shorter_runs_have_shorter_warmups():
    usual = forecast_usual(fit_runs(runs()), total_steps=STEPS // 2, max_lr=LR / 2)
    assert usual.warmup_steps == RISE // 2
    assert usual.best is None
    assert all(row.schedule.total_steps == STEPS // 2 for row in usual.table.rows)
    assert all(row.peak_lr == pytest.approx(LR / 2) for row in usual.table.rows)


@pytest.mark.parametrize(("settings", "match"), [({"total_steps": 1}, "'steps' must be"), ({"max_lr": 0}, "'max_lr'")])
def test_wrong_settings_of_a_forecast(settings, match):
    with pytest.raises(ValueError, match=match):
        forecast_usual(fit_runs(runs()), **settings)


def test_logs_are_read_with_their_warnings_and_distinct_names(tmp_path):
    write_logs(tmp_path)
    head, *rows = log_text(COSINE).splitlines()
    late = tmp_path / "late.csv"
    late.write_text("\n".join([head, *rows[10:]]) + "\n")
    loaded = read_runs([tmp_path / "cosine.csv", tmp_path / "cosine.csv", late], LogSettings())
    assert [run.name for run in loaded.runs] == ["cosine", "cosine (2)", "late"]
    assert len(loaded.warnings) == 1
    assert "no learning rate is logged before step 200" in loaded.warnings[0]
    assert "pass --warmup_steps" in read_runs([late], LogSettings(), name_of=lambda name: f"--{name}").warnings[0]
    assert read_runs([late], LogSettings(warmup_steps=RISE)).warnings == ()
    short = read_runs([tmp_path / "cosine.csv"], LogSettings(last_step=1000)).runs[0]
    assert short.steps[-1] == 1000


def test_several_runs_of_one_file(tmp_path):
    texts = [log_text(schedule).splitlines()[1:] for schedule in (CONSTANT, COSINE)]
    rows = [f"{one},{other.partition(',')[2]}" for one, other in zip(*texts, strict=True)]
    path = tmp_path / "export.csv"
    path.write_text("\n".join(["step,a - lr,a - val_loss,b - lr,b - val_loss", *rows]) + "\n")
    loaded = read_runs([path], LogSettings(), ["a", "b"])
    assert [run.name for run in loaded.runs] == ["a", "b"]
    assert fit_runs(loaded.runs).names == ("a", "b")
    with pytest.raises(ValueError, match="'c'"):
        read_runs([path], LogSettings(), ["c"])
