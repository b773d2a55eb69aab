import pytest
from tests.planning.logged import runs

import eigencurve as ec
from eigencurve.planning.forecasts import forecast_view
from eigencurve.planning.from_runs import plan_from_view
from eigencurve.planning.limits import RateLimit
from eigencurve.planning.plan_view import basis_rows, code_line, percent, rate_line, recommended_place, table_rows


@pytest.fixture(scope="module")
def plan():
    return ec.plan(ec.PowerLaw(1.2, 1e-3, 1.0), total_steps=500)


def test_every_schedule_has_a_row_with_its_rate_and_its_distance(plan):
    rows = table_rows(plan)
    assert [row["schedule"] for row in rows] == [row.name for row in plan.table]
    place = recommended_place(plan)
    for i, (shown, row) in enumerate(zip(rows, plan.table, strict=True)):
        assert float(shown["peak rate"]) == pytest.approx(row.schedule.values().max(), rel=0.005)
        assert "loss" not in shown
        if i == place:
            assert (shown["schedule"], shown["loss behind"], shown["interval"]) == (plan.name, "–", "–")
        else:
            assert float(shown["loss behind"].removesuffix("\u00a0%")) == pytest.approx(
                100 * row.behind, rel=0.01, abs=0.006
            )
            low, high = (float(word) for word in shown["interval"].removesuffix("\u00a0%").split(" to "))
            assert (low, high) == pytest.approx((100 * row.behind_low, 100 * row.behind_high), rel=0.01, abs=0.006)


def test_forecast_losses_are_shown():
    plan = plan_from_view(forecast_view(runs()))
    assert [float(row["loss"]) for row in table_rows(plan)] == pytest.approx([row.loss for row in plan.table], rel=1e-3)


def test_every_input_has_its_source_and_an_assumed_one_its_effect(plan):
    rows = {row["input"]: row for row in basis_rows(plan)}
    assert [row["source"] for row in rows.values()] == [known.source for known in plan.inputs]
    assert "ten times" in rows["gradient noise"]["value"]
    assert rows["steps"]["value"] == "500"


def test_the_code_of_logs_uses_the_optimizer_of_the_reader(plan):
    assert code_line(plan) == "Code that trains with this schedule:"
    assert "with your optimizer" in code_line(plan_from_view(forecast_view(runs())))


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.00001, "0\u00a0%"), (-0.09996, "-10.0\u00a0%"), (0.0999, "+9.99\u00a0%"), (12.0, "+1200\u00a0%")],
)
def test_differences_have_three_digits(fraction, text):
    assert percent(fraction) == text


def test_a_rate_is_next_to_its_limit():
    limit = RateLimit(0.2, "2/L")
    assert rate_line(0.2, limit) == "Peak rate 0.2; largest stable rate 2/L = 0.2."
    assert rate_line(3.0, limit).startswith("Peak rate 3 is 15 times the stability limit 2/L = 0.2 of this spectrum")
