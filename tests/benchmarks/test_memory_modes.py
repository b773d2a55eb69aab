import numpy as np
import torch
from benchmarks.memory_modes import peak_bytes, reset_peak
from tests.hessian.matrices import MatrixOperator, hessian_like

from benchmarks import memory_modes

SIZE = 100_000_000


def test_the_peak_keeps_memory_that_was_freed_until_it_is_reset():
    before = reset_peak()
    block = np.ones(SIZE // 8)
    del block
    assert 0.9 * SIZE < peak_bytes() - before < 1.2 * SIZE
    assert reset_peak() < before + 0.2 * SIZE


def test_rows_compare_every_budget_with_the_full_basis(monkeypatch):
    monkeypatch.setattr(memory_modes, "SMALL_BUDGETS", ((40, 80), (30, 60)))
    rows = memory_modes.resnet20_rows(MatrixOperator(hessian_like(2000, 20), torch.float32))
    assert [row[:2] for row in rows] == [["full", "60"], ["full", "80"], ["40", "80"], ["30", "60"]]
    assert rows[1][3] == "0.000"


def test_the_page_has_both_tables(monkeypatch):
    monkeypatch.setattr(memory_modes, "resnet20_operator", lambda _data: None)
    monkeypatch.setattr(memory_modes, "resnet20_rows", lambda _operator: [["full", "150", "150 (100%)", "0.000"]])
    monkeypatch.setattr(memory_modes, "in_new_process", lambda _, vectors, steps: [f"{vectors}", f"{steps}", *"abcd"])
    page = memory_modes.make()
    assert "| full | 150 | 150 (100%) | 0.000 |" in page.body
    assert "| 8 | 20 | a | b | c | d |" in page.body
