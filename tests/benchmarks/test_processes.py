import numpy as np
import torch
from tests.hessian.models import problem

from benchmarks import processes
from eigencurve.hessian import HessianOperator


def test_any_number_of_processes_has_all_rows_once():
    whole = processes._rows(0, 1)[0]
    parts = torch.cat([processes._rows(rank, 4)[0] for rank in range(4)])
    assert torch.equal(parts, whole)


def test_the_numbers_are_those_of_an_estimate():
    model, loss_fn, batch = problem("conv")
    alphas, betas = processes._numbers(HessianOperator(model, loss_fn, batch))
    assert len(alphas) == len(betas) == processes.NUM_STEPS
    assert np.isfinite(alphas).all()


def test_the_page_groups_the_rows_by_operator(monkeypatch):
    def measured(count):
        sizes = (240_000_000 // count, 10**8, 10**9)
        return [processes.ProcessResult(name, count, 10, *sizes, 0.0, 1e-6) for name in processes.OPERATORS]

    monkeypatch.setattr(processes, "measure_processes", measured)
    lines = [line for line in processes.make().body.splitlines() if line.startswith("| `")]
    assert lines[2] == "| `DistributedOperator` | 4 | 60 | 100 | 1000 | exact | 1.0e-06 |"
    assert [line.split(" | ")[1] for line in lines] == ["1", "2", "4"] * 2
