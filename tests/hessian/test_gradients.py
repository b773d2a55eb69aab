"""Signed sums of gradients: their covariance is that of one example, however the data is batched."""

import itertools

import pytest
import torch
from tests.hessian.models import problem
from torch import nn
from torch.nn import functional as F

from eigencurve.hessian import GaussNewtonOperator, HessianOperator, as_operator, gradients
from eigencurve.hessian.gradients import ExampleGradients, balanced_signs


def example_gradients(model, loss_fn, batch):
    """The gradient of every example, one per row, by torch.func."""
    names, values = zip(*model.named_parameters(), strict=True)
    rest = dict(model.named_buffers())

    def loss(parameters, x, y):
        named = dict(zip(names, parameters, strict=True))
        return loss_fn(torch.func.functional_call(model, {**named, **rest}, (x[None],)), y[None])

    parts = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(tuple(v.detach() for v in values), *batch)
    return torch.cat([part.flatten(1) for part in parts], dim=1)


def all_signs(count):
    """Every assignment of signs with as many +1 as -1, and one 0 if ``count`` is odd."""
    half = count // 2
    for positive in itertools.combinations(range(count), half):
        rest = [i for i in range(count) if i not in positive]
        for negative in itertools.combinations(rest, half):
            signs = torch.zeros(count, dtype=torch.int8)
            signs[list(positive)], signs[list(negative)] = 1, -1
            yield signs


@pytest.mark.parametrize("count", [2, 4, 5, 6])
def test_the_mean_over_all_signs_is_the_unbiased_covariance(count, monkeypatch):
    model, loss_fn, batch = problem("mlp", num_examples=count)
    source = ExampleGradients("test", HessianOperator(model, loss_fn, batch))
    every = list(all_signs(count))
    monkeypatch.setattr(gradients, "balanced_signs", lambda _, seed: every[seed])
    samples = torch.stack([source.sample(seed) for seed in range(len(every))])
    covariance = torch.cov(example_gradients(model, loss_fn, batch).T, correction=1)
    torch.testing.assert_close(samples.T @ samples / len(samples), covariance, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("count", [2, 7, 100, 101])
def test_signs_are_balanced_and_follow_the_seed(count):
    signs = balanced_signs(count, seed=3)
    assert int((signs == 1).sum()) == int((signs == -1).sum()) == count // 2
    assert torch.equal(signs, balanced_signs(count, seed=3))
    assert count < 7 or not torch.equal(signs, balanced_signs(count, seed=4))


@pytest.mark.parametrize("kind", [HessianOperator, GaussNewtonOperator])
@pytest.mark.parametrize("name", ["linear", "mlp", "conv", "lstm"])
@pytest.mark.parametrize("options", [{}, {"microbatch": 2}])
def test_a_sample_is_the_signed_sum_of_the_examples(name, kind, options):
    model, loss_fn, batch = problem(name, num_examples=7)
    source = ExampleGradients("test", kind(model, loss_fn, batch, **options))
    source.require_independent()
    if name == "lstm":  # vmap has no rule for it
        parts = [HessianOperator(model, loss_fn, (batch[0][i : i + 1], batch[1][i : i + 1])) for i in range(7)]
        each = torch.stack([part.gradient() for part in parts])
    else:
        each = example_gradients(model.eval(), loss_fn, batch)
    signs = balanced_signs(7, seed=5).double()
    torch.testing.assert_close(source.mean, each.mean(0))
    torch.testing.assert_close(source.sample(5), signs @ each / 6**0.5)


def test_batches_of_unequal_size_and_dictionaries():
    model, loss_fn, (x, y) = problem("mlp", num_examples=7)
    dicts = [{"x": x[:5], "y": y[:5], "scale": torch.tensor(1.0)}, {"x": x[5:], "y": y[5:], "scale": torch.tensor(1.0)}]
    operator = HessianOperator.from_objective(
        model, lambda model, batch: batch["scale"] * loss_fn(model(batch["x"]), batch["y"]), dicts, microbatch=3
    )
    whole = ExampleGradients("test", HessianOperator(model, loss_fn, (x, y)))
    split = ExampleGradients("test", operator)
    split.require_independent()
    torch.testing.assert_close(split.mean, whole.mean)
    torch.testing.assert_close(split.sample(1), whole.sample(1))


def masked_loss(outputs, labels):
    return F.cross_entropy(outputs.flatten(0, 1), labels.flatten(), ignore_index=-1)


def masked_problem():
    source = torch.Generator().manual_seed(0)
    x = torch.randn(6, 4, 3, generator=source, dtype=torch.float64)
    labels = torch.randint(0, 2, (6, 4), generator=source)
    labels[0, 1:], labels[3] = -1, -1  # one row with one label, one without any
    return nn.Linear(3, 2).double(), (x, labels)


def num_labels(batch):
    return int((batch[1] >= 0).sum())


@pytest.mark.parametrize("microbatch", [None, 1, 4])
def test_with_a_count_rows_are_weighted_by_it(microbatch):
    model, batch = masked_problem()
    operator = HessianOperator(model, masked_loss, batch, count=num_labels, microbatch=microbatch)
    source = ExampleGradients("test", operator)
    source.require_independent()
    assert source.num_examples == 6
    total = F.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten(), ignore_index=-1, reduction="none")
    each = [
        torch.cat([part.flatten() for part in torch.autograd.grad(row.sum(), model.parameters(), retain_graph=True)])
        for row in total.reshape(6, 4)
    ]
    expected = balanced_signs(6, seed=2).double() @ torch.stack(each) / (operator.num_examples / 6) / 6**0.5
    torch.testing.assert_close(source.sample(2), expected)


def contrastive(outputs, labels):
    return (outputs @ outputs.T).square().mean() + F.cross_entropy(outputs, labels)


@pytest.mark.parametrize(
    "loss_fn",
    [contrastive, nn.CrossEntropyLoss(reduction="sum"), nn.CrossEntropyLoss(torch.tensor([1.0, 5.0]).double())],
)
def test_a_loss_that_is_no_mean_over_examples_is_refused(loss_fn):
    model, _, batch = problem("mlp", num_examples=8)
    with pytest.raises(ValueError, match="one whose loss is a mean over examples"):
        ExampleGradients("test", HessianOperator(model, loss_fn, batch, check=False)).require_independent()


def test_a_masked_loss_without_a_count_is_refused():
    model, batch = masked_problem()
    with pytest.raises(ValueError, match="pass 'count' if the loss ignores some labels"):
        ExampleGradients("test", HessianOperator(model, masked_loss, batch)).require_independent()


def test_batch_norm_in_train_mode_is_refused_with_the_reason():
    model, loss_fn, batch = problem("conv")
    source = ExampleGradients("test", HessianOperator(model, loss_fn, batch, mode="train"))
    with pytest.raises(ValueError, match=r"\(bn1\) mixes the examples of a batch"):
        source.sample(0)


def test_operators_without_examples_are_refused():
    with pytest.raises(TypeError, match="A matrix or a function of products has no examples"):
        ExampleGradients("test", as_operator(torch.eye(3, dtype=torch.float64)))
    model, loss_fn, batch = problem("mlp", num_examples=1)
    with pytest.raises(ValueError, match="one of at least 2 examples, got 1"):
        ExampleGradients("test", HessianOperator(model, loss_fn, batch, check=False)).require_independent()


def test_gradients_leave_no_trace():
    model, loss_fn, batch = problem("conv")
    model.train()
    operator = HessianOperator(model, loss_fn, batch)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.random.get_rng_state()
    operator.gradient(torch.tensor([True] * 3 + [False] * 3))
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class Doubled:
    """An operator in other coordinates, x = 2 w."""

    def __init__(self, operator):
        self.operator, self.dim, self.dtype, self.device = operator, operator.dim, operator.dtype, operator.device

    def transform_gradient(self, gradient):
        return gradient / 2


def test_a_wrapping_operator_transforms_the_gradients():
    model, loss_fn, batch = problem("mlp")
    plain = HessianOperator(model, loss_fn, batch)
    inner, outer = ExampleGradients("test", plain), ExampleGradients("test", Doubled(plain))
    torch.testing.assert_close(outer.mean, inner.mean / 2)
    torch.testing.assert_close(outer.sample(1), inner.sample(1) / 2)
