from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest
from tests.studio import asked
from tests.studio.opened import computing, plan_table, shown, tables

import eigencurve as ec
from eigencurve.planning.render import input_cells, table_cells
from eigencurve.spectrum.source import law_source, zoo_source
from eigencurve.studio.verdict import spectrum_plan

SCRIPT = """
from eigencurve.studio.verdict import verdict
from tests.studio import asked
verdict(asked.ask, "torch", "test")
"""


@pytest.fixture(scope="module")
def plan():
    return ec.plan(law_source(1.2, 1e3), total_steps=300, lr=30.0)


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setattr(asked, "answer", None)
    return AppTest.from_string(SCRIPT, default_timeout=120).run()


def answered(page, monkeypatch, answer):
    monkeypatch.setattr(asked, "answer", answer)
    page.run()
    assert not page.exception
    return page


def test_while_it_is_computed_the_page_says_so(page):
    assert computing(page)
    assert plan_table(page) is None


def test_the_verdict_its_table_its_notes_and_its_basis_are_shown(page, monkeypatch, plan):
    answered(page, monkeypatch, plan)
    assert not computing(page)
    assert plan.verdict in shown(page)
    assert plan_table(page)[1:] == table_cells(plan)[1]
    assert len(plan.warnings) >= 2
    assert all(sentence in shown(page) for sentence in plan.warnings)
    basis = next(table for table in tables(page) if table[0][0] == "input")
    assert basis[1:] == input_cells(plan)[1]
    assert [button.proto.label for button in page.get("download_button")] == ["Download JSON", "Download CSV"]
    assert "schedule_from_dict" in page.code[0].value


def test_the_previous_verdict_stays_pale_while_the_next_is_computed(page, monkeypatch, plan):
    answered(page, monkeypatch, plan)
    answered(page, monkeypatch, None)
    assert computing(page)
    assert plan.verdict in shown(page)
    assert any("st-key-earlier_verdict{opacity" in block.proto.body for block in page.get("html"))
    assert not page.get("download_button")
    other = replace(plan, verdict="Another verdict.", warnings=())
    answered(page, monkeypatch, other)
    assert not computing(page)
    assert "Another verdict." in shown(page)
    assert plan.verdict not in shown(page)
    assert not page.warning


def test_an_error_is_shown_in_its_place(page, monkeypatch):
    answered(page, monkeypatch, ValueError("no <b>plan</b>"))
    assert page.error[0].value.replace("\\", "") == "no <b>plan</b>"
    assert not computing(page)


def test_a_schedule_of_many_numbers_has_no_code(page, monkeypatch, plan):
    long = ec.piecewise(2000, list(range(2000)), [1 / (1 + step) for step in range(2000)])
    answered(page, monkeypatch, replace(plan, schedule=long))
    assert not page.code
    assert len(page.get("download_button")) == 2


def test_the_plan_is_that_of_the_library():
    subject = zoo_source("vgg16_cifar10_narrow8")
    found = spectrum_plan(subject, 200, 0.1, None, 0.0, False)
    assert found.to_dict() == ec.plan(subject, total_steps=200, lr=0.1).to_dict()
    found = spectrum_plan(law_source(1.2, 1e2), 60, 0.1, 3.0, 0.9, True)
    law = law_source(1.2, 1e2)
    expected = ec.plan(law, total_steps=60, lr=0.1, noise=3.0, momentum=0.9, nesterov=True)
    assert found.to_dict() == expected.to_dict()
