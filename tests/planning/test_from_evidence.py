import pytest

from eigencurve.planning.from_evidence import plan_from_evidence
from eigencurve.planning.training import Training


def test_it_recommends_to_hold_and_decay_late_to_zero():
    plan = plan_from_evidence(50_000, Training("adamw"))
    rates = plan.schedule.values()
    assert len(rates) == 50_000
    assert rates[0] < 0.01 * rates.max()  # a warmup
    assert rates[25_000] == rates.max()
    assert rates[-1] < 0.001 * rates.max()
    assert plan["cosine to 0"].behind > 0
    assert plan.table[-1].name == "constant"


def test_it_says_what_is_assumed_and_what_to_measure():
    plan = plan_from_evidence(50_000, Training("adamw"))
    sources = {known.name: known.source for known in plan.inputs}
    assert (sources["steps"], sources["peak rate"], sources["losses"]) == ("given", "assumed", "assumed")
    assert "arXiv:2501.18965" in str(plan)
    assert any("Log two short runs" in note for note in plan.notes)
    assert plan.gap is None


def test_a_given_rate_and_warmup_are_used():
    plan = plan_from_evidence(1000, Training("adamw"), lr=3e-4, warmup_steps=50)
    assert plan.schedule.values().max() == pytest.approx(3e-4)
    assert plan.schedule(49) < plan.schedule(50) == 3e-4
    assert {known.name: known.source for known in plan.inputs}["peak rate"] == "given"


def test_the_evidence_is_not_about_sgd():
    assert any("from AdamW" in note for note in plan_from_evidence(1000, Training("sgd")).notes)


def test_three_sentences():
    assert plan_from_evidence(50_000, Training("adamw")).verdict.count(". ") == 2
