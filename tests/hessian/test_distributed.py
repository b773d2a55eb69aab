import json

import numpy as np
import pytest
import torch
from tests.hessian.models import problem
from tests.torchrun import run_in_two

from eigencurve.hessian import DistributedOperator, HessianOperator, estimate_noise, estimate_spectrum

pytestmark = pytest.mark.slow


PROGRAM = """
import json, sys
import torch, torch.distributed as dist
from eigencurve.hessian import DistributedOperator, HessianOperator, estimate_noise, estimate_spectrum
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

# The same with vectors in parts: each process has its own, of about half the size.
sharded = DistributedOperator(HessianOperator(model, loss_fn, (x[mine], y[mine])), shard_vectors=True)
space = sharded.space
assert space.size == (operator.dim + 1 - rank) // 2
vector = torch.arange(1.0, operator.dim + 1, dtype=torch.float64)
for name, found, wanted in (
    ("product", sharded(space.part(vector)), operator(vector)),
    ("gradient", sharded.gradient(), operator.gradient()),
    ("parameters", sharded.parameter_vector(), operator.parameter_vector()),
    ("metric", sharded.preconditioned_by(vector)(space.part(vector)), operator.preconditioned_by(vector)(vector)),
):
    assert torch.allclose(found, space.part(wanted), rtol=1e-13, atol=1e-14), name
rows = torch.arange(7) % 2 == 0
assert torch.allclose(sharded.gradient(rows), space.part(operator.gradient(rows)), atol=1e-14)
e = estimate_spectrum(sharded, 20, num_probes=2, settle=None, checkpoint=sys.argv[1] + "/sharded.npz")
assert abs(sharded.mean_loss() - operator.mean_loss()) < 1e-14
assert abs(operator.mean_loss() - HessianOperator(model, loss_fn, (x, y)).mean_loss()) < 1e-14
for name, is_sharded in (("run.npz", False), ("sharded.npz", True)):
    other = HessianOperator(model, lambda z, t: 10 * loss_fn(z, t), (x[mine], y[mine]))
    changed = DistributedOperator(other, shard_vectors=is_sharded)
    try:
        estimate_spectrum(changed, 25, num_probes=2, settle=None, checkpoint=sys.argv[1] + "/" + name)
    except ValueError as error:
        assert "another problem: different product, gradient, loss'. The parameters, the data" in str(error), error
    else:
        raise SystemExit("the checkpoint of another loss was resumed")
noise = estimate_noise(sharded, e, 4, num_products=10)
if rank == 0:
    with open(sys.argv[1] + "/sharded.json", "w") as file:
        json.dump([[a.tolist() for a in e.alphas], [b.tolist() for b in e.betas], noise.sigma2], file)
try:
    sharded(vector)
except ValueError as error:
    assert f"'vector' must be a tensor of {space.size} numbers" in str(error)
else:
    raise SystemExit("a whole vector was accepted")

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
    alphas, betas, sigma2 = json.loads((tmp_path / "sharded.json").read_text())
    np.testing.assert_allclose(alphas, single.alphas, atol=1e-12)
    np.testing.assert_allclose(betas, single.betas, atol=1e-12)
    noise = estimate_noise(HessianOperator(model, loss_fn, batch), single, 4, num_products=10)
    assert sigma2 == pytest.approx(noise.sigma2, rel=1e-9)
    assert {path.name.split(".part-")[-1][:6] for path in tmp_path.glob("sharded.npz*")} == {"0-of-2", "1-of-2"}
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
