import pytest
import torch
from tests.hessian.models import dense, dense_gauss_newton, dense_hessian, generator, problem, scramble
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from eigencurve.hessian.operator import GaussNewtonOperator, HessianOperator

KINDS = ["linear", "mlp", "conv", "lstm", "attention"]


@pytest.mark.parametrize(
    ("operator", "reference"), [(HessianOperator, dense_hessian), (GaussNewtonOperator, dense_gauss_newton)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_products_equal_those_of_the_dense_matrix(operator, reference, kind):
    model, loss_fn, batch = problem(kind)
    expected = reference(model.eval(), loss_fn, batch)
    torch.testing.assert_close(dense(operator(model, loss_fn, batch)), expected, rtol=1e-8, atol=1e-8)


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_recurrent_and_attention_layers_of_torch(dtype):
    source = generator()
    x, y = torch.randn(4, 3, 4, generator=source, dtype=dtype), torch.tensor([0, 1, 2, 3])
    encoder = scramble(nn.TransformerEncoderLayer(4, 2, 5, batch_first=True).to(dtype)).eval()
    recurrent = scramble(nn.LSTM(4, 4, num_layers=2, batch_first=True).to(dtype))
    for model in (encoder, recurrent):
        first = 0 if model is recurrent else slice(None)  # an LSTM also returns its state
        loss = lambda outputs, labels, first=first: F.cross_entropy(outputs[first][:, -1], labels)  # noqa: E731
        operator = HessianOperator.from_objective(model, lambda m, b, loss=loss: loss(m(b[0]), b[1]), [(x, y)])
        expected = dense_hessian(model, loss, (x, y))
        tolerance = 1e-8 if dtype == torch.float64 else 1e-4
        torch.testing.assert_close(dense(operator), expected, rtol=tolerance, atol=tolerance)
        assert expected.abs().max() > 100 * tolerance


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
    yield "matches a trainable parameter", ValueError, lambda: HessianOperator(model, loss, (x, y), parameters="x.*")
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


def failing(num_times, message, loss_fn):
    """An objective that raises ``message`` the first ``num_times`` times, and the list of its calls."""
    calls = []

    def objective(m, batch):
        calls.append(0)
        if len(calls) <= num_times:
            raise NotImplementedError(message)
        return loss_fn(m(batch[0]), batch[1])

    return objective, calls


def test_a_kernel_without_a_second_derivative_is_replaced_once():
    model, loss_fn, batch = problem("mlp")
    vector = torch.ones(sum(p.numel() for p in model.parameters()), dtype=torch.float64)
    message = "derivative for aten::fast_backward is not implemented"
    objective, calls = failing(1, message, loss_fn)
    operator = HessianOperator.from_objective(model, objective, [batch], check=False)
    torch.testing.assert_close(operator(vector), dense_hessian(model, loss_fn, batch) @ vector)
    assert len(calls) == 2
    for product, num_tries in (("autograd", 2), ("finite_difference", 1)):
        objective, calls = failing(99, message, loss_fn)
        operator = HessianOperator.from_objective(model, objective, [batch], check=False, product=product)
        with pytest.raises(ValueError, match="differentiable twice") as error:
            operator(vector)
        assert (error.value.argument, error.value.value) == ("model", message)
        assert len(calls) == num_tries
    objective, calls = failing(99, "these labels are wrong", loss_fn)  # any other error is the model's own
    operator = HessianOperator.from_objective(model, objective, [batch], check=False)
    with pytest.raises(NotImplementedError, match="these labels are wrong"):
        operator(vector)
    assert len(calls) == 1
