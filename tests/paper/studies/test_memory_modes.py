import torch
from tests.hessian.matrices import MatrixOperator, hessian_like

from paper.engine.request import Request
from paper.studies import memory_modes


def test_rows_compare_every_budget_with_the_full_basis(monkeypatch):
    monkeypatch.setattr(memory_modes, "SMALL_BUDGETS", ((40, 80), (30, 60)))
    rows = memory_modes.resnet20_rows(MatrixOperator(hessian_like(2000, 20), torch.float32))
    assert [row[:2] for row in rows] == [["full", "60"], ["full", "80"], ["40", "80"], ["30", "60"]]
    assert rows[1][3] == "0.000"


def test_the_page_has_both_tables(monkeypatch):
    monkeypatch.setattr(memory_modes, "resnet20_operator", lambda _data: None)
    monkeypatch.setattr(memory_modes, "resnet20_rows", lambda _operator: [["full", "150", "150 (100%)", "0.000"]])
    monkeypatch.setattr(memory_modes, "_in_new_process", lambda vectors, steps: [f"{vectors}", f"{steps}", *"abcd"])
    page = memory_modes.make(Request())
    assert "| full | 150 | 150 (100%) | 0.000 |" in page.body
    assert "| 8 | 20 | a | b | c | d |" in page.body
