"""Products of matrices by the fastest library have PyTorch's own values and derivatives of first and second order."""

import itertools

import pytest
import torch
from tests.hessian.models import generator
from tests.hessian.test_kernels import graph, require_equal
from tests.hessian.test_kernels import rand as rand_of
from torch.nn import functional as F

from eigencurve.hessian import HessianOperator, bilinear
from eigencurve.hessian.kernels import FastKernels

needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN")


@pytest.fixture(autouse=True)
def _replace_all(monkeypatch):
    """Replace products of any size, also where oneDNN is not faster."""
    monkeypatch.setattr(bilinear, "WORTHWHILE", 0)
    monkeypatch.setattr(bilinear, "is_onednn_faster", lambda: True)


def rand(*shape, dtype=torch.float32):
    return rand_of(*shape, dtype=dtype)


PRODUCTS = {
    "linear": (F.linear, (5, 4), (3, 4)),
    "linear with a bias": (F.linear, (5, 4), (3, 4), (3,)),
    "linear with two leading axes": (F.linear, (2, 5, 4), (3, 4), (3,)),
    "linear with many rows and columns": (F.linear, (60, 5), (8, 5)),
    "addmm": (torch.addmm, (3,), (5, 4), (4, 3)),
    "mm": (torch.mm, (5, 4), (4, 3)),
    "matmul by a matrix": (torch.matmul, (2, 5, 4), (4, 3)),
    "batch with few columns": (torch.bmm, (6, 5, 4), (6, 4, 3)),
    "batch with few rows": (torch.matmul, (6, 3, 4), (6, 4, 5)),
    "operator with two leading axes": (lambda a, b: a @ b, (2, 3, 5, 4), (2, 3, 4, 3)),
    "transposed": (lambda a, b: a.mT @ b.mT, (2, 3, 4, 5), (2, 3, 3, 4)),
}


@needs_onednn
@pytest.mark.parametrize("kind", PRODUCTS)
def test_products_equal_those_of_torch(kind):
    function, *shapes = PRODUCTS[kind]
    require_equal(function, *(rand(*shape) for shape in shapes), kernel="_Partial", tolerance=1e-4)


LEFT_ALONE = {
    "double precision": lambda: rand(5, 4, dtype=torch.float64) @ rand(4, 3, dtype=torch.float64),
    "vector": lambda: rand(5, 4) @ rand(4),
    "broadcast batch": lambda: rand(1, 5, 4) @ rand(6, 4, 3),
    "scaled sum": lambda: torch.addmm(rand(3), rand(5, 4), rand(4, 3), beta=0.5),
    "vector of weights": lambda: F.linear(rand(5, 4), rand(4)),
}


@pytest.mark.parametrize("kind", LEFT_ALONE)
def test_other_products_are_torch_s_own(kind):
    with FastKernels():
        value = LEFT_ALONE[kind]()
    assert not any("_Partial" in name for name in graph(value))
    torch.testing.assert_close(value, LEFT_ALONE[kind]())


def test_mixed_precision_wrong_shapes_and_small_products_are_left_to_torch(monkeypatch):
    with torch.autocast("cpu", dtype=torch.bfloat16), FastKernels():
        assert F.linear(rand(5, 4), rand(3, 4)).dtype == torch.bfloat16
    with FastKernels(), pytest.raises(RuntimeError, match="cannot be multiplied"):
        F.linear(rand(5, 4), rand(3, 7))
    monkeypatch.undo()
    with FastKernels():
        assert not any("_Partial" in name for name in graph(rand(6, 5, 4) @ rand(6, 4, 3)))


@needs_onednn
def test_weights_that_need_no_gradient_get_none():
    x, weight = rand(5, 4).detach(), rand(3, 4)
    with FastKernels():
        (gradient,) = torch.autograd.grad(F.linear(x, weight).square().sum(), weight, create_graph=True)
    (product,) = torch.autograd.grad(gradient, weight, torch.ones_like(weight))
    torch.testing.assert_close(product, 2 * torch.ones_like(weight) @ x.T @ x)


@needs_onednn
def test_a_hessian_of_such_layers_is_the_plain_one():
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    x, y = rand(7, 4).detach(), torch.randint(0, 3, (7,), generator=generator(1))
    operator = HessianOperator(model, F.cross_entropy, (x, y))
    vector = torch.randn(operator.dim, generator=generator(2))
    gradient = torch.autograd.grad(F.cross_entropy(model(x), y), model.parameters(), create_graph=True)
    expected = torch.autograd.grad(torch.cat([part.flatten() for part in gradient]) @ vector, model.parameters())
    flat = torch.cat([part.flatten() for part in expected])
    torch.testing.assert_close(operator(vector), flat, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("seconds", "chosen"), [((1.0, 2.0), True), ((1.0, 1.2), False), ((2.0, 1.0), False)])
def test_onednn_is_chosen_if_its_shortest_time_is_clearly_shorter(monkeypatch, seconds, chosen):
    monkeypatch.undo()
    turns = [(9.0, 9.0)] * bilinear.TIMED_TURNS  # with other work on the machine
    turns[3], turns[5] = (seconds[0], 9.0), (9.0, seconds[1])
    times = itertools.chain.from_iterable(turns)
    monkeypatch.setattr(bilinear.torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(bilinear.timeit, "timeit", lambda *_, **__: next(times))
    assert bilinear.is_onednn_faster.__wrapped__() is chosen
    monkeypatch.setattr(bilinear.torch.backends.mkldnn, "is_available", lambda: False)
    assert not bilinear.is_onednn_faster.__wrapped__()


@pytest.mark.parametrize(("rows", "columns"), [(slice(None, None, 2), slice(None)), (slice(None), slice(3, 40))])
def test_onednn_gets_matrices_without_gaps(monkeypatch, rows, columns):
    """With gaps, such as those of every second example, it takes hundreds of times as long."""
    matrix, seen = torch.randn(80, 60, generator=generator())[rows, columns], []
    original = torch.ops.mkldnn._linear_pointwise
    monkeypatch.setattr(
        torch.ops.mkldnn, "_linear_pointwise", lambda a, b, *rest: seen.append((a, b)) or original(a, b, *rest)
    )
    assert torch.allclose(bilinear._by_onednn(matrix.mT, matrix), matrix.mT @ matrix, rtol=1e-5, atol=1e-4)
    assert all(part.is_contiguous() or part.mT.is_contiguous() for part in seen[0])
