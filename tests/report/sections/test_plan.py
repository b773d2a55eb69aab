import pytest
from tests.planning.logged import runs
from tests.report.measured import NAME, measured_subject, tables_of, text_of

import eigencurve as ec
from eigencurve.planning.forecasts import forecast_view
from eigencurve.planning.from_runs import plan_from_view
from eigencurve.planning.plan_view import BASIS, TABLE, basis_rows, table_rows
from eigencurve.report.page import note, with_commands
from eigencurve.report.sections.plan import plan_section


@pytest.fixture(scope="module")
def plan():
    return ec.plan(measured_subject(), total_steps=300, lr=0.5)


@pytest.mark.parametrize("kind", ["spectrum", "logs"])
def test_the_verdict_comes_first_then_the_table_then_the_inputs(plan, kind):
    known = plan if kind == "spectrum" else plan_from_view(forecast_view(runs()))
    section = plan_section(known)
    text = text_of(section)
    assert text.startswith(known.verdict)
    tables = tables_of(section)
    assert list(tables) == [TABLE, BASIS]
    assert tables[TABLE][1:] == [list(row.values()) for row in table_rows(known)]
    assert tables[BASIS][1:] == [list(row.values()) for row in basis_rows(known)]
    for sentence in known.notes:
        assert note(*with_commands(sentence)) in section.blocks


def test_the_recommended_row_is_marked(plan):
    (marked,) = [row for row in "".join(plan_section(plan).blocks).split("<tr") if 'class="marked"' in row]
    assert f">{plan.name}</th>" in marked


def test_notes_are_warnings_with_commands(plan):
    blocks = "".join(plan_section(plan).blocks)
    assert blocks.count('class="note"') == len(plan.notes) > 1
    assert "<code>eigencurve estimate --noise</code>" in blocks
    assert NAME not in blocks


def test_the_code_is_that_of_the_recommended_schedule():
    simple = ec.plan(ec.PowerLaw(1.2, 1e-3, 1.0), total_steps=200, noise=1e6)
    assert simple.name == "cosine to 0"
    assert f"ec.schedule_from_dict({simple.schedule.to_dict()!r})" in text_of(plan_section(simple))


def test_a_schedule_of_many_numbers_is_loaded_from_a_file():
    searched = ec.plan(ec.PowerLaw(1.2, 1e-3, 1.0), total_steps=2000, noise=50.0, initial_error=1.0)
    assert searched.name == "numerical optimum"
    text = text_of(plan_section(searched))
    assert "schedule_from_dict" not in text
    assert "eigencurve schedule --load schedule.json --code torch" in text
