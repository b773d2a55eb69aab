import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.hessian.models import dense, dense_gauss_newton, dense_hessian, generator, problem, scramble
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from eigencurve.hessian.operator import GaussNewtonOperator, HessianOperator

KINDS = ["linear", "mlp", "conv", "lstm", "attention"]


@pytest.mark.parametrize("kind", KINDS)
def test_hessian_equals_the_dense_one(kind):
    model, loss_fn, batch = problem(kind)
    expected = dense_hessian(model.eval(), loss_fn, batch)
    torch.testing.assert_close(dense(HessianOperator(model, loss_fn, batch)), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_gauss_newton_equals_the_dense_one(kind):
    model, loss_fn, batch = problem(kind)
    expected = dense_gauss_newton(model.eval(), loss_fn, batch)
    torch.testing.assert_close(dense(GaussNewtonOperator(model, loss_fn, batch)), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("operator", [HessianOperator, GaussNewtonOperator])
@pytest.mark.parametrize("kind", KINDS)
def test_microbatches_and_ragged_batches_equal_one_batch(operator, kind):
    model, loss_fn, (x, y) = problem(kind, num_examples=7)
    vector = torch.randn(operator(model, loss_fn, (x, y)).dim, generator=generator(), dtype=torch.float64)
    expected = operator(model, loss_fn, (x, y))(vector)
    ragged = [(x[:4], y[:4]), (x[4:6], y[4:6]), (x[6:], y[6:])]
    loader = DataLoader(TensorDataset(x, y), batch_size=3, shuffle=True, generator=generator())
    for source, microbatch in [((x, y), 2), (ragged, None), (ragged, 3), (loader, None), (loader, 2)]:
        found = operator(model, loss_fn, source, microbatch=microbatch)
        assert found.num_examples == 7
        torch.testing.assert_close(found(vector), expected, rtol=1e-10, atol=1e-12)


def test_a_subset_of_parameters_is_a_block_of_the_hessian():
    model, loss_fn, batch = problem("mlp")
    whole = dense_hessian(model, loss_fn, batch)
    block = HessianOperator(model, loss_fn, batch, parameters="2.*")
    assert block.names == ("2.weight", "2.bias")
    torch.testing.assert_close(dense(block), whole[-block.dim :, -block.dim :], rtol=1e-8, atol=1e-8)
    corner = HessianOperator(model, loss_fn, batch, parameters=["0.bias", "2.bias"])
    assert corner.dim == 6


def test_from_objective_takes_dicts_and_models_that_know_their_loss():
    model, loss_fn, (x, y) = problem("mlp")
    batches = [{"x": x[:4], "y": y[:4], "note": "a"}, {"x": x[4:], "y": y[4:], "note": "b"}]
    vector = torch.randn(26, generator=generator(), dtype=torch.float64)
    found = HessianOperator.from_objective(model, lambda m, b: loss_fn(m(b["x"]), b["y"]), batches, microbatch=3)
    torch.testing.assert_close(found(vector), HessianOperator(model, loss_fn, (x, y))(vector), rtol=1e-10, atol=1e-12)
    halves = GaussNewtonOperator.from_objective(
        model, lambda m, b: m(b["x"]), lambda z, b: loss_fn(z, b["y"]), batches, microbatch=3
    )
    expected = GaussNewtonOperator(model, loss_fn, (x, y))(vector)
    torch.testing.assert_close(halves(vector), expected, rtol=1e-10, atol=1e-12)


def test_train_mode_uses_the_statistics_of_the_batch():
    model, loss_fn, batch = problem("conv")
    expected = dense_hessian(model.train(), loss_fn, batch)
    found = HessianOperator(scramble(model), loss_fn, batch, mode="train")
    torch.testing.assert_close(dense(found), expected, rtol=1e-7, atol=1e-8)


def test_products_follow_the_parameters():
    model, loss_fn, batch = problem("mlp")
    operator = HessianOperator(model, loss_fn, batch)
    scramble(model, seed=5)
    torch.testing.assert_close(dense(operator), dense_hessian(model, loss_fn, batch), rtol=1e-8, atol=1e-8)


def test_unused_parameters_and_linear_losses_have_no_curvature():
    model = nn.ModuleDict({"used": nn.Linear(2, 1), "idle": nn.Linear(2, 1)}).double()
    x = torch.ones(3, 2, dtype=torch.float64)
    operator = HessianOperator.from_objective(model, lambda m, b: m["used"](b).mean(), [x])
    assert not operator(torch.ones(operator.dim, dtype=torch.float64)).any()


class Noisy(nn.Module):
    """Everything that a product could disturb: mixed modes, statistics, frozen weights, gradients."""

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


def test_works_where_gradients_are_switched_off():
    model, loss_fn, batch = problem("mlp")
    vector = torch.ones(26, dtype=torch.float64)
    expected = HessianOperator(model, loss_fn, batch)(vector)
    with torch.no_grad():
        assert torch.equal(HessianOperator(model, loss_fn, batch)(vector), expected)
    with torch.inference_mode():
        torch.testing.assert_close(HessianOperator(model, loss_fn, batch)(vector.clone()), expected)


def test_active_dropout_is_refused_by_name():
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    batch = (torch.randn(5, 3, generator=generator()), torch.zeros(5, dtype=torch.long))
    with pytest.raises(ValueError, match=r"deterministic.*Dropout is active in 1: use mode='eval'"):
        HessianOperator(model, F.cross_entropy, batch, mode="train")
    HessianOperator(model, F.cross_entropy, batch)


def test_other_randomness_is_refused():
    model = nn.Linear(3, 2)
    batch = (torch.randn(5, 3, generator=generator()), torch.zeros(5, dtype=torch.long))
    with pytest.raises(ValueError, match=r"deterministic.*draws random numbers"):
        HessianOperator.from_objective(
            model, lambda m, b: F.cross_entropy(m(b[0] + torch.randn_like(b[0])), b[1]), [batch]
        )


def test_kernels_that_differ_from_run_to_run_are_refused():
    model, calls = nn.Linear(3, 2), []

    def objective(m, b):
        calls.append(0)
        return F.cross_entropy(m(b[0]) * (1 + 0.1 * len(calls)), b[1])

    batch = (torch.randn(5, 3, generator=generator()), torch.zeros(5, dtype=torch.long))
    with pytest.raises(ValueError, match="Non-deterministic kernels"):
        HessianOperator.from_objective(model, objective, [batch])


class Lopsided(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, 0.1 * g * x


def test_an_asymmetric_hessian_is_refused():
    model = nn.ParameterDict({"a": torch.ones(4), "b": torch.ones(4) * 2})
    with pytest.raises(ValueError, match=r"symmetric Hessian \(u·Hv = v·Hu\)"):
        HessianOperator.from_objective(model, lambda m, b: (Lopsided.apply(m["a"], m["b"]) * b).sum(), [torch.ones(4)])


class OnceOnly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * torch.cos(ctx.saved_tensors[0])


def test_without_a_double_backward_finite_differences_are_offered_and_measured():
    class Once(nn.Linear):
        def forward(self, x):
            return OnceOnly.apply(super().forward(x))

    model, x = scramble(Once(3, 2).double()), torch.randn(5, 3, generator=generator(), dtype=torch.float64)
    batch = (x, torch.zeros(5, 2, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"differentiable twice.*product='finite_difference'"):
        HessianOperator(model, F.mse_loss, batch)
    found = HessianOperator(model, F.mse_loss, batch, product="finite_difference")
    exact = nn.Linear(3, 2).double()
    exact.load_state_dict(model.state_dict())
    expected = HessianOperator(exact, lambda z, y: F.mse_loss(torch.sin(z), y), batch)
    vector = torch.randn(8, generator=generator(), dtype=torch.float64)
    gap = float((found(vector) - expected(vector)).norm() / expected(vector).norm())
    assert gap < found.product_error < 1e-6  # the reported error bounds the true one, and both are small


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_recurrent_and_attention_layers_of_torch(dtype):
    source = generator()
    x, y = torch.randn(4, 3, 8, generator=source, dtype=dtype), torch.zeros(4, dtype=torch.long)
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).to(dtype)
    recurrent = nn.LSTM(8, 8, num_layers=2, batch_first=True).to(dtype)
    for model in (encoder, recurrent):
        operator = HessianOperator.from_objective(
            model, lambda m, b: F.cross_entropy((m(b[0])[0] if m is recurrent else m(b[0]))[:, -1], b[1]), [(x, y)]
        )
        assert torch.isfinite(operator(torch.ones(operator.dim, dtype=dtype))).all()


def test_batch_norm_in_train_mode_across_microbatches_is_refused_with_the_reason():
    model, loss_fn, batch = problem("conv")
    with pytest.raises(ValueError, match=r"'microbatch' must be None.*depend on how the batch is cut"):
        HessianOperator(model, loss_fn, batch, mode="train", microbatch=2)
    HessianOperator(model, loss_fn, batch, mode="train", microbatch=6)


def bad_calls():
    model, x, y = nn.Linear(3, 2), torch.ones(4, 3), torch.zeros(4, dtype=torch.long)
    frozen = nn.Linear(3, 2).requires_grad_(False)
    mixed = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2).double())
    poisoned = x * float("nan")
    loss = F.cross_entropy
    yield "trainable parameters", ValueError, lambda: HessianOperator(frozen, loss, (x, y))
    yield "at least one example", ValueError, lambda: HessianOperator(model, loss, [])
    yield "at least one example", ValueError, lambda: HessianOperator(model, loss, DataLoader([]))
    yield r"a scalar.*shape \(4,\)", ValueError, lambda: HessianOperator(model, lambda z, _: z[:, 0], (x, y))
    yield "must be finite, got nan", ValueError, lambda: HessianOperator(model, loss, (poisoned, y))
    yield "one floating type", ValueError, lambda: HessianOperator(mixed, loss, (x, y))
    yield "float32 or float64", ValueError, lambda: HessianOperator(nn.Linear(3, 2).half(), loss, (x, y))
    yield "some trainable parameter matches", ValueError, lambda: HessianOperator(model, loss, (x, y), parameters="x.*")
    yield "iterable more than once", TypeError, lambda: HessianOperator(model, loss, iter([(x, y)]))
    yield r"pairs \(x, y\)", TypeError, lambda: HessianOperator(model, loss, [x, y])
    yield "a torch.nn.Module", TypeError, lambda: HessianOperator(print, loss, (x, y))
    yield "'mode' must be one of", ValueError, lambda: HessianOperator(model, loss, (x, y), mode="test")
    yield "'microbatch' must be >= 1", ValueError, lambda: HessianOperator(model, loss, (x, y), microbatch=0)
    yield "a tensor of 8 numbers", ValueError, lambda: HessianOperator(model, loss, (x, y))(torch.ones(3))
    yield "'vector' must be a tensor", TypeError, lambda: HessianOperator(model, loss, (x, y))([1.0] * 8)
    yield "finite Hessian", ValueError, lambda: HessianOperator(model, lambda z, _: (z * 0).norm(), (x, y))
    yield "returns a tensor", TypeError, lambda: GaussNewtonOperator(nn.LSTM(3, 2), loss, (x, y))


@pytest.mark.parametrize(("match", "kind", "call"), list(bad_calls()))
def test_bad_input_is_refused(match, kind, call):
    with pytest.raises(kind, match=match):
        call()


def test_fingerprints_tell_problems_apart():
    model, loss_fn, (x, y) = problem("mlp")
    first = HessianOperator(model, loss_fn, (x, y)).fingerprint()
    assert HessianOperator(model, loss_fn, (x.clone(), y)).fingerprint() == first
    assert HessianOperator(model, loss_fn, (x + 1e-9, y)).fingerprint() != first
    assert HessianOperator(model, loss_fn, (x, y), parameters="2.*").fingerprint() != first
    assert GaussNewtonOperator(model, loss_fn, (x, y)).fingerprint() != first
    assert HessianOperator(scramble(model, 9), loss_fn, (x, y)).fingerprint() != first


def test_importing_the_core_loads_no_torch():
    code = "import eigencurve, sys; sys.exit(any(name.split('.')[0] == 'torch' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
