import pytest
from tests.report.measured import measured_subject, tables_of, text_of

import eigencurve as ec
from eigencurve.planning.doubts import length_doubt
from eigencurve.planning.recipe import Recipe
from eigencurve.planning.subject import law_subject

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.planning.training import Training
from eigencurve.report.page import note, with_commands
from eigencurve.report.sections.schedule import schedule_section


def test_each_interval_has_a_row_and_the_code_makes_the_schedule():
    recipe = Recipe("eigencurve", 300, 0.5, measured_subject(), 10, {"beta": 2.0}, Training("sgd", weight_decay=1e-2))
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


def test_a_run_too_short_to_decay_has_a_note():
    subject = law_subject(1.5, 1e6)
    doubt = length_doubt(subject, 50)
    assert "only falls to" in doubt
    short = schedule_section(Recipe("eigencurve", 60, 0.1, subject, 10))
    assert note(*with_commands(doubt)) in short.blocks
    final = schedule_section(Recipe("eigencurve", 60, 0.1, subject, 10, {"min_lr": 0.001}))
    assert not any('class="note"' in block for block in final.blocks)
