"""The faster kernels have PyTorch's own values and derivatives of first and second order."""

import pytest
import torch
from tests.hessian.models import generator
from torch.nn import functional as F

from eigencurve.hessian.bilinear import crashes_channels_last
from eigencurve.hessian.kernels import FastKernels


def derivatives(function, *leaves):
    """Value of ``function``, and gradient and Hessian-vector product of a curved function of it."""
    value = function(*leaves)
    gradient = torch.autograd.grad(torch.tanh(value).square().sum(), leaves, create_graph=True)
    source = generator(5)
    duals = [torch.randn(part.shape, generator=source, dtype=part.dtype) for part in gradient]
    return value, *gradient, *torch.autograd.grad(gradient, leaves, duals)


def require_equal(function, *leaves, kernel=None, tolerance=1e-10):
    """Compare with PyTorch's own; a node of the graph, one of the last three, is the ``kernel``."""
    expected = derivatives(function, *leaves)
    with FastKernels():
        torch.testing.assert_close(derivatives(function, *leaves), expected, rtol=tolerance, atol=tolerance)
        assert kernel is None or any(kernel in name for name in graph(function(*leaves)))


def graph(value):
    """Names of all nodes of a graph."""
    waiting, names = [value.grad_fn], []
    while waiting:
        node = waiting.pop()
        names.append(node.name())
        waiting.extend(after for after, _ in node.next_functions if after is not None)
    return names


def rand(*shape, dtype=torch.float64):
    return torch.randn(shape, generator=generator(sum(shape)), dtype=dtype).requires_grad_()


CONVOLUTIONS = {
    "plain": (F.conv2d, (2, 3, 6, 6), (4, 3, 3, 3), {}),
    "strided and padded": (F.conv2d, (2, 3, 7, 6), (4, 3, 3, 3), {"stride": 2, "padding": (1, 2)}),
    "grouped and dilated": (F.conv2d, (2, 4, 8, 8), (6, 2, 2, 2), {"groups": 2, "dilation": 2}),
    "one by one": (F.conv2d, (2, 4, 6, 6), (3, 4, 1, 1), {"stride": 2}),
    "padding by name": (F.conv2d, (2, 3, 5, 5), (2, 3, 3, 3), {"padding": "same"}),
    "one axis": (F.conv1d, (2, 3, 9), (4, 3, 3), {"padding": 1}),
    "three axes": (F.conv3d, (1, 2, 4, 4, 4), (2, 2, 2, 2, 2), {}),
    "without a batch": (F.conv2d, (3, 6, 6), (4, 3, 3, 3), {}),
}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolutions_equal_those_of_torch(kind, bias):
    function, x_shape, w_shape, options = CONVOLUTIONS[kind]
    leaves = (rand(*x_shape), rand(*w_shape), *([rand(w_shape[0])] if bias else []))
    ours = kind not in ("padding by name", "without a batch")
    require_equal(lambda *parts: function(*parts, **options), *leaves, kernel="_Partial" if ours else None)


@pytest.mark.parametrize("shape", [(4, 3, 5), (4, 3, 5, 5), (4, 3)])
def test_fixed_batch_norms_equal_those_of_torch(shape):
    mean, variance = torch.tensor([0.1, -0.2, 0.3]).double(), torch.tensor([0.5, 1.0, 2.0]).double()

    def norm(x, weight, bias):
        return F.batch_norm(x, mean, variance, weight, bias, training=False)

    require_equal(norm, rand(*shape), rand(3), rand(3), kernel="_FixedNorm" if len(shape) > 2 else None)


def test_batch_norm_in_train_mode_is_torch_s_own():
    x, weight, bias = rand(4, 3, 5), rand(3), rand(3)
    with FastKernels():
        value = F.batch_norm(x, torch.zeros(3).double(), torch.ones(3).double(), weight, bias, training=True)
    assert not any("FixedNorm" in name for name in graph(value))


ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "softplus": F.softplus,
    "sharper softplus": lambda x: F.softplus(x, beta=2.0),
    "tanh": torch.tanh,
    "sigmoid": lambda x: x.sigmoid(),
    "layer of gelu": torch.nn.GELU(),
    "layer of silu": torch.nn.SiLU(),
}


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activations_equal_those_of_torch(kind):
    require_equal(ACTIVATIONS[kind], rand(5, 7), kernel="_Activation")


def test_activations_in_place_are_torch_s_own():
    with FastKernels():
        before = rand(5, 7) * 2
        assert F.silu(before, inplace=True) is before


def test_a_kept_graph_gives_the_same_product_twice():
    x, dual = rand(5, 7), torch.ones(5, 7, dtype=torch.float64)
    with FastKernels():
        (gradient,) = torch.autograd.grad(F.gelu(x).square().sum(), x, create_graph=True)
    products = [torch.autograd.grad(gradient, x, scale * dual, retain_graph=True)[0] for scale in (1.0, -2.0)]
    torch.testing.assert_close(products[1], -2.0 * products[0])


def test_models_may_use_function_transforms():
    x = rand(5, 7)
    with FastKernels():
        slopes = torch.func.vmap(torch.func.grad(lambda row: F.gelu(row).sum()))(x)
    torch.testing.assert_close(slopes, torch.autograd.grad(F.gelu(x).sum(), x)[0])


def test_the_shapes_that_crash_are_narrow_strided_one_by_ones():
    assert crashes_channels_last(4, (1, 1), (2, 2))
    assert not any(
        crashes_channels_last(*shape) for shape in ((8, (1, 1), (2, 2)), (4, (3, 3), (2, 2)), (4, (1, 1), (1, 1)))
    )
