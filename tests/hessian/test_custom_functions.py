"""Custom autograd functions and gradient hooks: wrong derivatives are refused, right ones are not."""

import pytest
import torch
from tests.hessian.models import generator, scramble
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from eigencurve.hessian import GaussNewtonOperator, HessianOperator


class DetachedSin(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, g):
        return g * torch.cos(ctx.saved_tensors[0].detach())


class Sin(DetachedSin):
    @staticmethod
    def backward(ctx, g):
        return g * torch.cos(ctx.saved_tensors[0])


class DetachedSlope(Sin):
    """Its backward loses the derivative with respect to the incoming gradient."""

    @staticmethod
    def backward(ctx, g):
        return g.detach() * torch.cos(ctx.saved_tensors[0])


class NumberSin(torch.autograd.Function):
    """Keeps a tensor of its forward pass instead of its input."""

    @staticmethod
    def forward(x):
        return torch.sin(x), torch.cos(x)

    @staticmethod
    def setup_context(ctx, inputs, output):  # noqa: ARG004 -- by PyTorch's names
        ctx.slope = output[1]
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _):
        return g * ctx.slope


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        return g * (ctx.saved_tensors[0] > 0)


class Rounded(torch.autograd.Function):
    """A straight-through estimator."""

    @staticmethod
    def forward(_ctx, x):
        return x.round()

    @staticmethod
    def backward(_ctx, g):
        return g


class SingleSquare(torch.autograd.Function):
    """Accepts float32 only."""

    @staticmethod
    def forward(ctx, x):
        if x.dtype != torch.float32:
            raise TypeError
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


class WrongSingleSquare(SingleSquare):
    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0].detach()


class Bilinear(torch.autograd.Function):
    """x * scale * y with a number that is no tensor."""

    @staticmethod
    def forward(ctx, x, scale, y):
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return x * scale * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * ctx.scale * y, None, g * ctx.scale * x


class Apply(nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, x):
        return self.call(x)


def network(call, dtype=torch.float32):
    return scramble(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8), Apply(call), nn.Linear(8, 2)).to(dtype))


def batch(dtype=torch.float32, count=40):
    return torch.randn(count, 3, generator=generator(), dtype=dtype), torch.arange(count) % 2


WRONG = [DetachedSin.apply, DetachedSlope.apply, lambda x: NumberSin.apply(x)[0]]
RIGHT = [Sin.apply, Relu.apply, lambda x: Relu.apply(Relu.apply(x)), Rounded.apply, lambda x: Bilinear.apply(x, 2.0, x)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("microbatch", [None, 7])
@pytest.mark.parametrize("call", WRONG)
def test_a_backward_with_a_wrong_derivative_is_refused_with_the_remedy(call, microbatch, dtype):
    model = network(call, dtype)
    with pytest.raises(ValueError, match=r"(Sin|Slope), whose second derivatives are off"):
        HessianOperator(model, F.cross_entropy, batch(dtype), microbatch=microbatch)


def test_finite_differences_need_no_right_double_backward():
    model, examples = network(DetachedSin.apply, torch.float64), batch(torch.float64)
    ours = HessianOperator(model, F.cross_entropy, examples, product="finite_difference")
    model[3].call = torch.sin
    v = torch.randn(ours.dim, generator=generator(), dtype=torch.float64)
    expected = HessianOperator(model, F.cross_entropy, examples)(v)
    # Kinks of the ReLU are part of differences; none is crossed with such short steps.
    assert float((ours(v) - expected).norm() / expected.norm()) < 1e-4


def test_a_loss_that_is_linear_in_a_wrong_function_is_refused():
    """Its gradient seems to be constant, so the products are zero."""
    model, examples = nn.Linear(3, 2), batch()
    with pytest.raises(ValueError, match="DetachedSin, whose second derivatives"):
        HessianOperator(model, lambda z, _: DetachedSin.apply(z).mean(), examples)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", [HessianOperator, GaussNewtonOperator])
@pytest.mark.parametrize("call", RIGHT)
def test_right_functions_are_accepted_also_with_kinks(call, kind, dtype):
    kind(network(call, dtype), F.cross_entropy, batch(dtype))


def test_a_function_that_accepts_float32_only_is_checked_with_longer_steps():
    HessianOperator(network(SingleSquare.apply), F.cross_entropy, batch())
    with pytest.raises(ValueError, match="WrongSingleSquare, whose second derivatives"):
        HessianOperator(network(WrongSingleSquare.apply), F.cross_entropy, batch())


def test_large_networks_with_kinks_and_a_custom_relu_are_accepted():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), Apply(Relu.apply), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten()]
    model = nn.Sequential(*layers, nn.Linear(16 * 64, 10))
    HessianOperator(model, F.cross_entropy, (torch.randn(32, 3, 12, 12), torch.arange(32) % 10))


def test_gauss_newton_needs_no_second_derivative_of_the_model():
    model, examples = network(DetachedSin.apply, torch.float64), batch(torch.float64)
    ours = GaussNewtonOperator(model, F.cross_entropy, examples)
    v = torch.ones(ours.dim, dtype=torch.float64)
    product = ours(v)
    model[3].call = torch.sin
    torch.testing.assert_close(product, GaussNewtonOperator(model, F.cross_entropy, examples)(v))


def test_functions_keep_their_forward():
    before = DetachedSin.__dict__["forward"]
    with pytest.raises(ValueError, match="DetachedSin"):
        HessianOperator(network(DetachedSin.apply), F.cross_entropy, batch())
    assert DetachedSin.__dict__["forward"] is before
    HessianOperator(network(Sin.apply), F.cross_entropy, batch())
    assert "forward" not in Sin.__dict__


def as_tuple(gradient):
    return None if gradient is None else (gradient,)


def hooked(kind, change):
    """A network with a gradient hook that returns ``change(gradient)``."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    if kind == "parameter":
        model[0].weight.register_hook(change)
    elif kind == "module":
        model[1].register_full_backward_hook(lambda _m, grads, _o: as_tuple(change(grads[0])))
    elif kind == "module, before":
        model[1].register_full_backward_pre_hook(lambda _m, grads: as_tuple(change(grads[0])))
    else:

        def call(x):
            y = torch.tanh(x)
            if y.requires_grad:
                y.register_hook(change)
            return y

        model[1] = Apply(call)
    return model


HOOKS = ["parameter", "module", "module, before", "forward"]


@pytest.mark.parametrize("kind", HOOKS)
@pytest.mark.parametrize("product", ["autograd", "finite_difference"])
def test_hooks_that_change_gradients_are_refused(kind, product):
    model = hooked(kind, lambda g: 2 * g)
    with pytest.raises(ValueError, match=r"without hooks that change its gradients.*handle\.remove"):
        HessianOperator(model, F.cross_entropy, batch(), product=product)
    x, y = batch()
    F.cross_entropy(model(x), y).backward()
    doubled = model[0].weight.grad.clone()
    model[0].weight._backward_hooks = None
    assert doubled.any()


@pytest.mark.parametrize("kind", HOOKS)
def test_hooks_that_only_look_at_gradients_are_accepted(kind):
    seen = []
    model = hooked(kind, lambda g: seen.append(g.norm()))
    HessianOperator(model, F.cross_entropy, batch())
    seen.clear()
    x, y = batch()
    F.cross_entropy(model(x), y).backward()
    assert seen  # the hooks are still there


def test_recomputed_custom_functions_are_checked_too():
    model = network(lambda x: checkpoint(DetachedSin.apply, x, use_reentrant=False))
    with pytest.raises(ValueError, match="DetachedSin"):
        HessianOperator(model, F.cross_entropy, batch())
