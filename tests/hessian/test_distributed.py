import json

import numpy as np
import pytest
import torch
from tests.hessian.models import problem
from tests.torchrun import run_in_two

from eigencurve.hessian import DistributedOperator, HessianOperator, estimate_spectrum

PROGRAM = """
import json, sys
import torch, torch.distributed as dist
from eigencurve.hessian import DistributedOperator, GaussNewtonOperator, HessianOperator, estimate_spectrum
from tests.hessian.models import problem
dist.init_process_group("gloo")
rank = dist.get_rank()
model, loss_fn, (x, y) = problem("conv", num_examples=7)
mine = slice(0, 5) if rank == 0 else slice(5, 7)
operator = DistributedOperator(HessianOperator(model, loss_fn, (x[mine], y[mine])))
e = estimate_spectrum(operator, 20, num_probes=2, settle=None, checkpoint=sys.argv[1] + "/run.npz")
if rank == 0:
    with open(sys.argv[1] + "/out.json", "w") as file:
        json.dump([[a.tolist() for a in e.alphas], [b.tolist() for b in e.betas], operator.num_examples], file)
preconditioned = operator.preconditioned_by(torch.arange(1.0, operator.dim + 1))
e = estimate_spectrum(preconditioned, 20, settle=None, checkpoint=sys.argv[1] + "/preconditioned.npz")
if rank == 0:
    with open(sys.argv[1] + "/preconditioned.json", "w") as file:
        json.dump([e.alphas[0].tolist(), e.betas[0].tolist()], file)
try:
    operator.preconditioned_by(torch.full((operator.dim,), 1.0 + rank))
except ValueError as error:
    assert "'preconditioner' must be equal in all processes" in str(error)
else:
    raise SystemExit("unequal preconditioners were accepted")
if rank == 1:
    with torch.no_grad():
        next(model.parameters()).add_(1)
try:
    DistributedOperator(HessianOperator(model, loss_fn, (x[mine], y[mine])))
except ValueError as error:
    assert "of equal parameters in all processes" in str(error)
else:
    raise SystemExit("unequal parameters were accepted")
dist.destroy_process_group()
"""


def test_two_processes_give_the_numbers_of_one(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run_in_two(program, tmp_path)
    alphas, betas, num_examples = json.loads((tmp_path / "out.json").read_text())
    model, loss_fn, batch = problem("conv", num_examples=7)
    single = estimate_spectrum(HessianOperator(model, loss_fn, batch), 20, num_probes=2, settle=None)
    assert num_examples == 7
    np.testing.assert_allclose(alphas, single.alphas, atol=1e-6)
    np.testing.assert_allclose(betas, single.betas, atol=1e-6)
    alphas, betas = json.loads((tmp_path / "preconditioned.json").read_text())
    operator = HessianOperator(model, loss_fn, batch)
    single = estimate_spectrum(operator.preconditioned_by(torch.arange(1.0, operator.dim + 1)), 20, settle=None)
    np.testing.assert_allclose(alphas, single.alphas[0], atol=1e-6)
    np.testing.assert_allclose(betas, single.betas[0], atol=1e-6)


def test_without_a_process_group_it_says_so():
    model, loss_fn, batch = problem("linear")
    assert not torch.distributed.is_initialized()
    with pytest.raises(ValueError, match="Start the program with torchrun"):
        DistributedOperator(HessianOperator(model, loss_fn, batch))
