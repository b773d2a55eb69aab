"""The preconditioner that is read from an optimizer, against the steps that the optimizer takes."""

import copy

import pytest
import torch
from tests.hessian.models import problem
from tests.hessian.optimizers import ADAM, OPTIMIZERS, flat, take_steps
from torch import optim

from eigencurve.hessian.adaptive import read_optimizer


def read(model, optimizer):
    return read_optimizer("test", optimizer, dict(model.named_parameters()))


def assert_state_explains_a_step(optimizer_of, num_steps=4):
    """P Δw = -lr (g + L2 decay * w), or with P times the decay if it is decoupled, of the step that was just taken."""
    model, loss_fn, batch = problem("mlp")
    optimizer = optimizer_of(model)
    take_steps(model, loss_fn, batch, optimizer, num_steps)
    before = flat(model.parameters())
    take_steps(model, loss_fn, batch, optimizer, 1)
    found, gradient = read(model, optimizer), flat([p.grad for p in model.parameters()])
    pull = found.weight_decay * before * (found.diagonal if found.decoupled else 1.0)
    step = -float(optimizer.param_groups[0]["lr"]) * (gradient + pull)
    # The differences of the parameters lose a few digits.
    torch.testing.assert_close(found.diagonal * (flat(model.parameters()) - before), step, rtol=1e-9, atol=1e-14)
    return found


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_state_explains_the_step_of_each_optimizer(name):
    kind, settings = OPTIMIZERS[name]
    found = assert_state_explains_a_step(lambda model: kind(model.parameters(), **settings))
    assert found.weight_decay == settings.get("weight_decay", 0.0)
    assert found.decoupled == (kind is optim.AdamW or name == "adam, decoupled")


@pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW])
def test_groups_with_their_own_settings_explain_the_step(kind):
    def optimizer_of(model):
        first = {"params": model[0].parameters(), "eps": 0.1, "betas": (0.0, 0.5)}
        second = {"params": model[2].parameters(), "lr": 0.03, "weight_decay": 0.2}
        return kind([second, first], **ADAM)

    assert assert_state_explains_a_step(optimizer_of).decoupled == (kind is optim.AdamW)


def test_groups_with_coupled_and_decoupled_decay_explain_the_step():
    def optimizer_of(model):
        first = {"params": model[0].parameters(), "decoupled_weight_decay": True, "weight_decay": 0.1, "lr": 0.03}
        return optim.Adam([{"params": model[2].parameters()}, first], **{**ADAM, "weight_decay": 0.4})

    assert not assert_state_explains_a_step(optimizer_of).decoupled


def test_bias_correction_and_moments_of_adam_are_those_of_the_paper():
    """From the gradients alone: v_k = (1 - b) Σ b^(k-i) g_i², divided by 1 - b^k."""
    model, loss_fn, batch = problem("mlp")
    optimizer, gradients = optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.95), eps=1e-8), []
    for _ in range(7):
        take_steps(model, loss_fn, batch, optimizer, 1)
        gradients.append(flat([p.grad for p in model.parameters()]))
    second = sum(0.05 * 0.95 ** (6 - i) * g**2 for i, g in enumerate(gradients))
    torch.testing.assert_close(read(model, optimizer).diagonal, (second / (1 - 0.95**7)).sqrt() + 1e-8)


def test_a_saved_state_of_low_precision_gives_a_diagonal_of_the_parameters_type():
    model, loss_fn, batch = problem("mlp")
    optimizer = take_steps(model, loss_fn, batch, optim.AdamW(model.parameters()), 3)
    exact = read(model, optimizer).diagonal
    for state in optimizer.state.values():
        state["exp_avg_sq"], state["step"] = state["exp_avg_sq"].bfloat16(), 3
    rounded = read(model, optimizer).diagonal
    assert rounded.dtype == torch.float64
    torch.testing.assert_close(rounded, exact, rtol=2**-8, atol=0.0)


def test_reading_leaves_the_optimizer_unchanged():
    model, loss_fn, batch = problem("mlp")
    optimizer = take_steps(model, loss_fn, batch, optim.RMSprop(model.parameters(), centered=True), 3)
    before = copy.deepcopy(optimizer.state_dict())
    read(model, optimizer)
    for index, state in optimizer.state_dict()["state"].items():
        assert all(torch.equal(value, before["state"][index][key]) for key, value in state.items() if key != "step")


def test_another_kind_of_optimizer_is_refused():
    model, _, _ = problem("mlp")
    with pytest.raises(TypeError, match=r"class Adam, AdamW, RMSprop, Adagrad of torch.optim, got 'SGD'. For another"):
        read(model, optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.parametrize("kind", [optim.Adam, optim.Adagrad])
def test_an_optimizer_without_a_step_is_refused(kind):
    model, _, _ = problem("mlp")
    optimizer = kind(model.parameters())
    with pytest.raises(ValueError, match=r"a state for the parameter 0.weight, got 'none'. Take at least one"):
        read(model, optimizer)
    assert kind is optim.Adagrad or not optimizer.state


def test_the_optimizer_of_another_model_is_refused():
    model, loss_fn, batch = problem("mlp")
    other = copy.deepcopy(model)
    optimizer = take_steps(model, loss_fn, batch, optim.Adam(model.parameters()), 1)
    with pytest.raises(ValueError, match=r"an optimizer of the parameter 0.weight, got 'one of others'. Build the op"):
        read(other, optimizer)


def test_groups_with_a_zero_rate_are_refused():
    model, loss_fn, batch = problem("mlp")
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.0}]
    optimizer = take_steps(model, loss_fn, batch, optim.Adam(groups, lr=0.1), 1)
    with pytest.raises(ValueError, match=r"of one learning rate or of positive ones, got 'rates of 0.1 and 0'"):
        read(model, optimizer)
    optimizer.param_groups[0]["lr"] = 0.0  # the first step of a warmup
    assert read(model, optimizer).diagonal.isfinite().all()
