"""Operators that are no fixed symmetric matrix are refused, with the likely cause."""

import pytest
import torch
from tests.hessian.matrices import MatrixOperator
from tests.hessian.models import generator
from torch import nn
from torch.nn import functional as F

from eigencurve.hessian.operator import HessianOperator
from eigencurve.hessian.verify import probe_vectors, relative_size, symmetry_gap


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
    with pytest.raises(ValueError, match="kernels are non-deterministic"):
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


def test_dropout_counts_where_it_is_active():
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    batch = (torch.randn(5, 3, generator=generator()), torch.zeros(5, dtype=torch.long))
    model[1].eval()
    HessianOperator(model, F.cross_entropy, batch, mode="keep")
    model[1].train()
    with pytest.raises(ValueError, match="Dropout is active in 1"):
        HessianOperator(model, F.cross_entropy, batch, mode="keep")


def test_the_gap_of_an_asymmetric_matrix_is_more_than_rounding():
    matrix = torch.randn(30, 30, generator=generator(), dtype=torch.float64)
    for wanted, source in ((True, matrix + matrix.T), (False, matrix)):
        operator = MatrixOperator(source)
        u, v = probe_vectors(operator)
        gap, allowed = symmetry_gap(u, v, operator(v), operator(u))
        assert (gap <= allowed) == wanted


def test_a_size_is_relative_unless_the_reference_is_zero():
    two, zero = torch.tensor([2.0, 0.0]), torch.zeros(2)
    assert relative_size(two, 4 * two) == 0.25
    assert relative_size(two, zero) == 2.0
