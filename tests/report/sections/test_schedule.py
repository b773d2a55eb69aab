import pytest
from tests.report.measured import measured_subject, tables_of, text_of

import eigencurve as ec
from eigencurve.planning.recipe import Recipe
from eigencurve.planning.subject import law_subject

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.report.sections.schedule import schedule_section


def test_each_interval_has_a_row_and_the_code_makes_the_schedule():
    recipe = Recipe("eigencurve", 300, 0.5, measured_subject(), 10, {"beta": 2.0}, 1e-2)
    section = schedule_section(recipe)
    curve = ec.eigencurve(measured_subject().prepared, 290, 0.5)
    rows = tables_of(section)["Intervals of the schedule"][1:]
    assert [row[2] for row in rows] == [f"{length:,.1f}" for length in curve.times[1:] - curve.times[:-1]]
    assert "schedule = ec.warmup(schedule, 10)" in text_of(section)


def test_the_limit_has_a_curve_and_no_list_of_intervals():
    recipe = Recipe("eigencurve", 50, 0.1, law_subject(1.5, 1e3), settings={"beta": 1.0})
    assert tables_of(schedule_section(recipe)) == {}


def test_a_schedule_needs_no_spectrum():
    assert "never" in text_of(schedule_section(Recipe("constant", 50, 0.1)))
