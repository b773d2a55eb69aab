import json

import numpy as np
import pytest
import torch
from tests.torchrun import run_in_two
from torch import nn
from torch.nn import functional as F

from eigencurve.hessian import (
    HessianOperator,
    ShardedHessianOperator,
    estimate_noise,
    estimate_spectrum,
    estimate_start,
)
from paper.models.transformer import Transformer, next_byte_loss

pytestmark = pytest.mark.slow


PROGRAM = """
import json, os, sys
import torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from eigencurve.hessian import HessianOperator, ShardedHessianOperator
from eigencurve.hessian import estimate_noise, estimate_spectrum, estimate_start
from tests.hessian.test_sharded import NUM_STEPS, displacement, next_byte_loss, trained_model, rows

dist.init_process_group("gloo")
rank, folder = dist.get_rank(), sys.argv[1]
model = trained_model()
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
x, y = rows()
mine = slice(0, 3) if rank == 0 else slice(3, 5)  # processes have 2 and 1 microbatches
before = [(p.to_local().clone(), p.grad) for p in model.parameters()]
model(x[:1])  # leaves whole parameters behind, which products must not use
operator = ShardedHessianOperator(model, next_byte_loss, (x[mine], y[mine]), microbatch=2)
space = operator.space
assert sum(space.gather(space.size)) == operator.dim and space.size < 0.6 * operator.dim

def whole(part):
    result = torch.zeros(operator.dim, dtype=part.dtype)
    start = 0
    for first, last in space.pieces:
        result[first:last] = part[start : start + last - first]
        start += last - first
    return space.sum(result).tolist()

flat = space.normal(torch.Generator().manual_seed(7), operator.dtype)
sharp = flat
for _ in range(6):
    sharp = operator(sharp)
    sharp = sharp / space.norm(sharp)
out = {"dim": operator.dim, "rows": operator.num_rows, "error": operator.product_error}
out["vectors"] = [whole(flat), whole(sharp)]
out["products"] = [whole(operator(flat)), whole(operator(sharp))]
out["gradient"] = whole(operator.gradient())
out["part"] = whole(operator.gradient(torch.tensor([False, False, False, True, False])))
out["parameters"] = whole(operator.parameter_vector())
estimate = estimate_spectrum(operator, NUM_STEPS, settle=None, checkpoint=folder + "/run.npz")
out["spectrum"] = [estimate.alphas[0].tolist(), estimate.betas[0].tolist()]
out["loss"] = operator.mean_loss()
again = estimate_spectrum(operator, NUM_STEPS, settle=None, checkpoint=folder + "/run.npz")
assert again.alphas[0].tolist() == estimate.alphas[0].tolist()
changed = ShardedHessianOperator(
    model, lambda z, t: 10 * next_byte_loss(z, t), (x[mine], y[mine]), microbatch=2, check=False
)
try:
    estimate_spectrum(changed, NUM_STEPS, settle=None, checkpoint=folder + "/run.npz")
except ValueError as error:
    assert "another problem: different product, gradient, loss'" in str(error), error
else:
    raise SystemExit("the checkpoint of another loss was resumed")
out["unused"] = estimate.num_unused
out["noise"] = estimate_noise(operator, estimate, 4, num_products=4).sigma2
out["start"] = estimate_start(operator, displacement(operator.dim), estimate, num_products=4).loss
for name, parameter in model.named_parameters():
    assert torch.equal(parameter.to_local(), before.pop(0)[0]) and parameter.grad is None, name
optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.1)
next_byte_loss(model(x), y).backward()
optimizer.step()
preconditioned = operator.preconditioned_by(optimizer)
out["diagonal"] = whole(preconditioned.diagonal)
out["preconditioned"] = whole(preconditioned(flat))
if rank == 0:
    with open(folder + "/out.json", "w") as file:
        json.dump(out, file)
try:
    HessianOperator(model, next_byte_loss, (x, y))
except ValueError as error:
    assert "Use ShardedHessianOperator" in str(error), error
else:
    raise SystemExit("a distributed model was accepted")
dist.destroy_process_group()
# FSDP2's modules and meshes still refer to the group, whose threads may abort the process when Python frees them.
sys.stdout.flush()
os._exit(0)
"""
NUM_STEPS = 8


def rows():
    text = torch.randint(0, 33, (5, 13), generator=torch.Generator().manual_seed(1))
    return text[:, :-1], text[:, 1:]


def trained_model():
    """A small transformer after a few steps of training, in float32; two of its 14 positions do not occur."""
    torch.manual_seed(0)
    model = Transformer(33, 16, 2, 2, 14, tied=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(20):
        optimizer.zero_grad()
        next_byte_loss(model(rows()[0]), rows()[1]).backward()
        optimizer.step()
    optimizer.zero_grad()
    return model


def displacement(dim):
    return torch.randn(dim, generator=torch.Generator().manual_seed(2))


def relative(found, expected):
    return float((found - expected).norm() / expected.norm())


def test_two_processes_of_a_distributed_model_agree_with_exact_products_of_the_whole(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run_in_two(program, tmp_path)
    found = json.loads((tmp_path / "out.json").read_text())
    model = trained_model()
    single, exact = (HessianOperator(m, next_byte_loss, rows()) for m in (model, trained_model().double()))
    assert (found["dim"], found["rows"]) == (exact.dim, 5)
    assert torch.equal(torch.tensor(found["parameters"]), single.parameter_vector())
    for vector, product in zip(found["vectors"], found["products"], strict=True):
        wanted = exact(torch.tensor(vector, dtype=torch.float64))
        assert relative(torch.tensor(product), wanted) < 2 * found["error"] < 2e-3
    assert relative(torch.tensor(found["gradient"]), exact.gradient()) < 1e-5
    part = exact.gradient(torch.tensor([False, False, False, True, False]))
    assert relative(torch.tensor(found["part"]), part) < 1e-5
    assert found["loss"] == pytest.approx(exact.mean_loss(), rel=1e-5)  # float32

    # The run is that of one process up to the error of the products.
    estimate = estimate_spectrum(single, NUM_STEPS, settle=None)
    scale = np.abs(estimate.alphas[0]).max()
    assert found["unused"] == estimate.num_unused == 2 * 16
    np.testing.assert_allclose(found["spectrum"], [estimate.alphas[0], estimate.betas[0]], atol=5e-3 * scale)
    assert found["noise"] == pytest.approx(estimate_noise(single, estimate, 4, num_products=4).sigma2, rel=1e-2)
    start = estimate_start(single, displacement(single.dim), estimate, num_products=4)
    assert found["start"] == pytest.approx(start.loss, rel=1e-2)
    assert sorted(path.name for path in tmp_path.glob("run.npz*"))[::2] == [
        "run.npz.part-0-of-2",
        "run.npz.part-1-of-2",
    ]

    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.1)
    next_byte_loss(model(rows()[0]), rows()[1]).backward()
    optimizer.step()
    metric = single.preconditioned_by(optimizer)
    assert relative(torch.tensor(found["diagonal"]), metric.diagonal) < 1e-4
    assert relative(torch.tensor(found["preconditioned"]), metric(torch.tensor(found["vectors"][0]))) < 1e-2


def test_a_model_that_is_not_distributed_is_refused():
    with pytest.raises(ValueError, match="weight, which is whole"):
        ShardedHessianOperator(nn.Linear(3, 2), F.mse_loss, (torch.ones(4, 3), torch.ones(4, 2)))
    with pytest.raises(TypeError, match=r"'model' must be a torch.nn.Module"):
        ShardedHessianOperator(F.relu, F.mse_loss, (torch.ones(4, 3), torch.ones(4, 2)))
