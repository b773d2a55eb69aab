from pathlib import Path

import pytest
import torch

from eigencurve.hessian import memory
from eigencurve.hessian.memory import free_bytes, plan_memory


def test_plans():
    size = 4 * 1000
    assert plan_memory(1000, 150, 40 * size).mode == "locked"
    full = plan_memory(1000, 150, 152 * size)
    assert (full.mode, full.num_bytes) == ("full", 152 * size)
    assert plan_memory(1000, 1, 3 * size).num_rows == 1
    assert plan_memory(10, 5).budget_bytes <= free_bytes(torch.device("cpu"))
    with pytest.raises(
        ValueError, match=r"'memory_budget' must be >= 16000, got 12000. Lanczos needs at least 4 vectors of 4.0 kB"
    ):
        plan_memory(1000, 150, 3 * size)
    with pytest.raises(TypeError, match="'memory_budget' must be an integer"):
        plan_memory(1000, 150, 1e9)


def test_a_control_group_limits_the_free_memory(tmp_path, monkeypatch):
    here = free_bytes(torch.device("cpu"))
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("2000\n")
    monkeypatch.setattr(memory, "Path", lambda path: tmp_path if "cgroup" in str(path) else Path(path))
    assert free_bytes(torch.device("cpu")) == 3000 < here
    assert plan_memory(10, 15).budget_bytes == 3000 // memory.FREE_PARTS
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes(torch.device("cpu")) > 3000


def test_the_summary_names_steps_vectors_and_budget():
    text = str(plan_memory(1000, 150, 40 * 4000))
    assert text == (
        "150 steps, keeping converged Ritz vectors and the last steps: 40 vectors of 4.0 kB, "
        "160.0 kB of the allowed 160.0 kB"
    )
