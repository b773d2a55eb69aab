import pytest
import torch
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional as F

from eigencurve.hessian import GaussNewtonOperator, HessianOperator
from eigencurve.hessian.isolation import twice_differentiable_kernels
from eigencurve.hessian.recurrent import lstm

SHAPES = {
    "one layer": {},
    "no bias, two layers": {"num_layers": 2, "bias": False},
    "both directions, batch first": {"num_layers": 2, "bidirectional": True, "batch_first": True},
}


def layer_and_inputs(**settings):
    torch.manual_seed(0)
    layer = nn.LSTM(3, 4, **settings).double()
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    states = torch.randn(2, layer.num_layers * (1 + layer.bidirectional), 2, 4, dtype=torch.float64)
    return layer, x.transpose(0, 1).contiguous() if layer.batch_first else x, tuple(states)


def apply(layer, x, h, c, *weights):
    return lstm(x, (h, c), weights, layer.bias, layer.num_layers, layer.bidirectional, layer.batch_first)


@pytest.mark.parametrize("settings", SHAPES.values(), ids=SHAPES)
def test_values_are_those_of_torch(settings):
    layer, x, states = layer_and_inputs(**settings)
    outputs, (last, cell) = layer(x, states)
    for ours, theirs in zip(apply(layer, x, *states, *layer._flat_weights), (outputs, last, cell), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("settings", SHAPES.values(), ids=SHAPES)
def test_both_derivatives_are_those_of_finite_differences(settings):
    layer, x, states = layer_and_inputs(**settings)
    inputs = [value.detach().clone().requires_grad_() for value in (x, *states, *layer._flat_weights)]
    assert gradcheck(lambda *values: apply(layer, *values), inputs)
    assert gradgradcheck(lambda *values: apply(layer, *values), inputs)


class Tagger(nn.Module):
    """An LSTM between two other layers, so that its inputs and outputs have second derivatives too."""

    def __init__(self, **settings):
        super().__init__()
        self.embedding = nn.Embedding(7, 3)
        self.lstm = nn.LSTM(3, 4, batch_first=True, **settings)
        self.head = nn.Linear(settings.get("proj_size") or 4 * (1 + self.lstm.bidirectional), 5)

    def forward(self, words):
        return self.head(torch.tanh(self.lstm(self.embedding(words))[0])).transpose(1, 2)


class Packed(Tagger):
    """Reads sequences of lengths 4 and 2."""

    def forward(self, words):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(words), [4, 2], batch_first=True)
        outputs, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.head(outputs).transpose(1, 2)


def problem(kind=Tagger, dtype=torch.float64, **settings):
    torch.manual_seed(1)
    model = kind(**settings).to(dtype)
    return model, F.cross_entropy, (torch.randint(0, 7, (2, 4)), torch.randint(0, 5, (2, 4)))


def autograd_product(model, loss_fn, batch, vector):
    """Hv of the graph that PyTorch builds from single steps."""
    parameters = list(model.parameters())
    with twice_differentiable_kernels(plain=True, device=torch.device("cpu")):
        gradient = torch.autograd.grad(loss_fn(model(batch[0]), batch[1]), parameters, create_graph=True)
        slope = sum(
            (part.flatten() @ direction)
            for part, direction in zip(gradient, vector.split([p.numel() for p in parameters]), strict=True)
        )
        return torch.cat([part.flatten() for part in torch.autograd.grad(slope, parameters)])


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Tagger, {}),
        (Tagger, {"num_layers": 2, "bidirectional": True}),
        (Tagger, {"proj_size": 2}),
        (Tagger, {"num_layers": 2, "dropout": 0.5}),
        (Packed, {}),
    ],
)
def test_products_are_those_of_single_steps(kind, settings):
    model, loss_fn, batch = problem(kind, **settings)
    operator = HessianOperator(model, loss_fn, batch)
    vector = torch.randn(operator.dim, dtype=torch.float64)
    torch.testing.assert_close(operator(vector), autograd_product(model.eval(), loss_fn, batch, vector))
    torch.testing.assert_close(operator(vector), operator(vector), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("kind", "settings", "ours"),
    [
        (Tagger, {"num_layers": 2, "dropout": 0.5}, True),
        (Tagger, {"proj_size": 2}, False),
        (Packed, {}, False),
    ],
)
def test_only_what_our_layer_cannot_do_is_left_to_torch(kind, settings, ours, monkeypatch):
    calls = []
    monkeypatch.setattr("eigencurve.hessian.kernels.lstm", lambda *args: calls.append(args) or lstm(*args))
    HessianOperator(*problem(kind, **settings))
    assert bool(calls) == ours


def test_gauss_newton_products_are_those_of_the_jacobian():
    model, loss_fn, batch = problem()
    names, values = zip(*model.named_parameters(), strict=True)

    def outputs(*parameters):
        with twice_differentiable_kernels(plain=True, device=torch.device("cpu")):
            return torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), batch[0])

    slopes = torch.autograd.functional.jacobian(outputs, values)
    logits = outputs(*values).detach()
    jacobian = torch.cat([slope.reshape(logits.numel(), -1) for slope in slopes], 1)
    bend = torch.autograd.functional.hessian(lambda z: loss_fn(z.view_as(logits), batch[1]), logits.flatten())
    operator = GaussNewtonOperator(model, loss_fn, batch)
    vector = torch.randn(operator.dim, dtype=torch.float64)
    torch.testing.assert_close(operator(vector), jacobian.T @ (bend @ (jacobian @ vector)))
