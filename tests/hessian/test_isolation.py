import contextlib
import random

import numpy as np
import pytest
import torch
from tests.hessian.models import generator, problem
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from eigencurve.hessian.isolation import twice_differentiable_kernels, undisturbed
from eigencurve.hessian.operator import HessianOperator

CPU = torch.device("cpu")


class Noisy(nn.Module):
    """Has everything that a product could disturb: mixed modes, statistics, frozen weights, gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen, self.norm, self.head = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)
        self.dropout = nn.Dropout(0.5)
        self.calls = 0
        self.fail_after = 10**9

    def forward(self, x):
        self.calls += 1
        if self.calls > self.fail_after:
            raise ArithmeticError("on purpose")
        return self.head(self.dropout(self.norm(self.frozen(x))))


def state_of(model, loader):
    numpy_state = np.random.get_state()
    return [
        [module.training for module in model.modules()],
        [(p.requires_grad, p.detach().clone(), None if p.grad is None else p.grad.clone()) for p in model.parameters()],
        [buffer.clone() for buffer in model.buffers()],
        [id(buffer) for buffer in model.buffers()],
        torch.get_rng_state(), random.getstate(), (numpy_state[1].tolist(), numpy_state[2]),
        loader.generator.get_state(),
    ]  # fmt: skip


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    return all(map(same, a, b)) if isinstance(a, list | tuple) and len(a) == len(b) else a == b


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("fail", [False, True])
def test_no_side_effects(mode, fail):
    model, source = Noisy(), generator()
    model.frozen.requires_grad_(False)
    model.norm.eval()
    model.dropout.p = 0.0
    data = TensorDataset(torch.randn(8, 3, generator=source), torch.randint(0, 2, (8,), generator=source))
    loader = DataLoader(data, batch_size=3, shuffle=mode == "eval", generator=generator(3))
    model.train(mode == "eval")
    F.cross_entropy(model(data.tensors[0]), data.tensors[1]).backward()
    before = state_of(model, loader)
    operator = HessianOperator(model, F.cross_entropy, loader, mode=mode)
    if fail:
        model.fail_after = model.calls + 1
        with pytest.raises(ArithmeticError, match="on purpose"):
            operator(torch.ones(operator.dim))
    else:
        operator(torch.ones(operator.dim))
    assert same(state_of(model, loader), before)


def test_operators_work_with_gradients_disabled():
    model, loss_fn, batch = problem("mlp")
    vector = torch.ones(26, dtype=torch.float64)
    expected = HessianOperator(model, loss_fn, batch)(vector)
    with torch.no_grad():
        assert torch.equal(HessianOperator(model, loss_fn, batch)(vector), expected)
    with torch.inference_mode():
        torch.testing.assert_close(HessianOperator(model, loss_fn, batch)(vector.clone()), expected)


def test_the_block_sees_the_mode_the_seed_and_copies_of_the_buffers():
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5)).train()
    mean, source = model[0].running_mean, generator(7)
    drawn = []
    for _ in range(2):
        with torch.no_grad(), undisturbed(model, "eval", 3, [source], CPU):
            assert not model[1].training
            assert torch.is_grad_enabled()
            model[0].running_mean.add_(1)
            drawn.append((torch.rand(1), random.random(), np.random.rand(), torch.rand(1, generator=source)))
    assert drawn[0] == drawn[1]
    assert model[1].training
    assert model[0].running_mean is mean
    assert not mean.any()


def test_kernel_switches_are_put_back_also_after_an_error():
    before = torch._C._get_mkldnn_enabled()
    with contextlib.suppress(ArithmeticError), twice_differentiable_kernels(True, CPU):
        assert not torch._C._get_mkldnn_enabled()
        raise ArithmeticError
    assert torch._C._get_mkldnn_enabled() == before
