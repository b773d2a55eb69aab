import numpy as np
import torch
from tests.hessian.models import problem

from eigencurve.experiments.studies import large_processes
from eigencurve.hessian import HessianOperator


def test_any_number_of_processes_has_all_rows_once():
    whole = large_processes._rows(0, 1)[0]
    parts = torch.cat([large_processes._rows(rank, 4)[0] for rank in range(4)])
    assert torch.equal(parts, whole)


def test_the_numbers_are_those_of_an_estimate():
    model, loss_fn, batch = problem("conv")
    alphas, betas = large_processes._numbers(HessianOperator(model, loss_fn, batch))
    assert len(alphas) == len(betas) == large_processes.NUM_STEPS
    assert np.isfinite(alphas).all()


def test_the_peak_grows_with_memory_in_use():
    before = large_processes.peak_bytes()
    block = np.ones(before // 8)  # as 8-byte numbers, as much as the peak so far
    assert 0.3 * block.nbytes < large_processes.peak_bytes() - before < 1.1 * block.nbytes
