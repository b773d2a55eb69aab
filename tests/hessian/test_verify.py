"""Operators that are no fixed symmetric matrix are refused, with the likely cause."""

import pytest
import torch
from tests.hessian.matrices import MatrixOperator
from tests.hessian.models import generator
from torch import nn
from torch.nn import functional as F

from eigencurve.hessian.operator import GaussNewtonOperator, HessianOperator
from eigencurve.hessian.space import whole_space
from eigencurve.hessian.verify import probe_vectors, symmetry_gap


def labelled():
    return torch.randn(5, 3, generator=generator()), torch.zeros(5, dtype=torch.long)


def test_dropout_is_refused_by_name_where_it_is_active():
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    HessianOperator(model, F.cross_entropy, labelled())
    model[1].eval()
    HessianOperator(model, F.cross_entropy, labelled(), mode="keep")
    model[1].train()
    for mode in ("keep", "train"):
        with pytest.raises(ValueError, match="Dropout is active in 1"):
            HessianOperator(model, F.cross_entropy, labelled(), mode=mode)


def test_other_randomness_is_refused():
    calls = []

    def random(m, b):
        return F.cross_entropy(m(b[0] + torch.randn_like(b[0])), b[1])

    def different_each_time(m, b):
        calls.append(0)
        return F.cross_entropy(m(b[0]) * (1 + 0.1 * len(calls)), b[1])

    for objective, cause in ((random, "draws random numbers"), (different_each_time, "kernels are non-deterministic")):
        with pytest.raises(ValueError, match=cause):
            HessianOperator.from_objective(nn.Linear(3, 2), objective, [labelled()])


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


def test_the_gap_of_an_asymmetric_matrix_is_more_than_rounding():
    matrix = torch.randn(30, 30, generator=generator(), dtype=torch.float64)
    for wanted, source in ((True, matrix + matrix.T), (False, matrix)):
        operator = MatrixOperator(source)
        u, v = probe_vectors(operator)
        gap, allowed = symmetry_gap(whole_space(30), u, v, operator(v), operator(u))
        assert (gap <= allowed) == wanted


def regression(num_examples=9, dtype=torch.float32):
    source = generator()
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(dtype)
    return model, tuple(torch.randn(num_examples, k, generator=source, dtype=dtype) for k in (3, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("microbatch", [None, 4])
@pytest.mark.parametrize("kind", [HessianOperator, GaussNewtonOperator])
def test_a_sum_over_the_batch_is_refused(kind, microbatch, dtype):
    model, batch = regression(dtype=dtype)
    for batches in (batch, [batch, batch]):
        with pytest.raises(ValueError, match="the mean over the batch") as error:
            kind(model, nn.MSELoss(reduction="sum"), batches, microbatch=microbatch)
        assert error.value.argument == "loss_fn"
    kind(model, nn.MSELoss(reduction="sum"), batch, check=False)


@pytest.mark.filterwarnings("error")
def test_means_are_accepted_and_batches_that_cannot_be_split_too():
    model, (x, y) = regression()
    HessianOperator(model, nn.MSELoss(), (x, y), microbatch=4)
    HessianOperator(model, nn.MSELoss(), (x[:1], y[:1]))
    HessianOperator(model, lambda z, t: F.mse_loss(z, t) + sum(p.square().sum() for p in model.parameters()), (x, y))
    labels = torch.tensor([0, -100, 1, 1, -100, -100, 0, 1, 0])
    count = lambda batch: int((batch[1] >= 0).sum())  # noqa: E731
    HessianOperator(model, F.cross_entropy, (x, labels), microbatch=4, count=count)
    fixed = lambda m, b: F.mse_loss(m(b[0].view(9, 3)), b[1].view(9, 2))  # noqa: E731
    HessianOperator.from_objective(model, fixed, [(x, y)])
    one = lambda m, b: F.mse_loss(m(b["x"].reshape(-1, 3)), torch.ones(1, 2))  # noqa: E731
    HessianOperator.from_objective(model, one, [{"x": torch.ones(3), "n": 2}], count=lambda _: 1)


def test_a_loss_that_depends_on_how_the_batch_is_split_is_a_warning_with_microbatches():
    model, (x, _) = regression()
    labels = torch.tensor([0, -100, 1, 1, -100, -100, 0, 1, 0])
    with pytest.warns(UserWarning, match=r"HessianOperator: the loss of a batch is .* of its halves .*'count'"):
        HessianOperator(model, F.cross_entropy, (x, labels), microbatch=4)
    HessianOperator(model, F.cross_entropy, (x, labels))


def test_a_sum_with_a_small_penalty_or_batch_norm_is_a_warning():
    model, (x, y) = regression()
    decay = lambda: 0.01 * sum(p.square().sum() for p in model.parameters())  # noqa: E731
    with pytest.warns(UserWarning, match=r"of its halves add up to .* seems to be a sum .*reduction='mean'"):
        HessianOperator(model, lambda z, t: F.mse_loss(z, t, reduction="sum") + decay(), (x, y))
    normed = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))
    with pytest.warns(UserWarning, match="seems to be a sum"):
        HessianOperator(normed, nn.MSELoss(reduction="sum"), (x, y), mode="train")


@pytest.mark.filterwarnings("error")
def test_a_mean_that_differs_from_that_of_its_halves_is_accepted():
    model, (x, _) = regression(num_examples=32)
    labels = torch.arange(32) % 2
    HessianOperator(model, nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0])), (x, labels))
    normed = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))
    HessianOperator(normed, F.cross_entropy, (x, labels), mode="train")
    among = lambda z, _: F.cross_entropy(F.normalize(z) @ F.normalize(z).T, torch.arange(len(z)))  # noqa: E731
    HessianOperator(model, among, (x, labels))
