import pytest
import torch
from tests.hessian.models import dense, dense_hessian, generator, problem
from torch import nn
from torch.nn import functional as F

from eigencurve.hessian.objective import Objective, as_objective, chosen_parameters
from eigencurve.hessian.operator import GaussNewtonOperator, HessianOperator


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


def test_batch_norm_in_train_mode_across_microbatches_is_refused_with_the_reason():
    model, loss_fn, batch = problem("conv")
    with pytest.raises(ValueError, match="how the batch is split"):
        HessianOperator(model, loss_fn, batch, mode="train", microbatch=2)
    HessianOperator(model, loss_fn, batch, mode="train", microbatch=6)


def test_a_loss_function_is_split_at_the_outputs_and_an_objective_is_kept():
    model, x, y = nn.Linear(3, 2), torch.ones(4, 3), torch.zeros(4, 2)
    halves = as_objective("f", F.mse_loss)
    outputs = halves.outputs(model, (x, y))
    assert torch.equal(outputs, model(x))
    assert torch.equal(halves.loss(outputs, (x, y)), F.mse_loss(model(x), y))
    assert as_objective("f", halves) is halves
    with pytest.raises(TypeError, match="callable as loss_fn"):
        as_objective("f", 3)
    found = HessianOperator(model, Objective(halves.outputs, halves.loss), [(x, y)])
    assert torch.equal(found(torch.ones(8)), HessianOperator(model, F.mse_loss, (x, y))(torch.ones(8)))


def test_patterns_choose_among_trainable_parameters_in_the_model_s_order():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].requires_grad_(False)
    assert list(chosen_parameters("f", model, ["2.*", "*.bias"])) == ["0.bias", "2.weight", "2.bias"]
    assert len(chosen_parameters("f", model, ["*"])) == 4
    with pytest.raises(ValueError, match=r"Its first trainable parameters are 0\.weight, 0\.bias"):
        chosen_parameters("f", model, ["1.*"])


def test_a_name_with_the_characters_of_a_pattern_matches_itself():
    model = nn.ParameterDict({"a[1]": nn.Parameter(torch.ones(2)), "a1": nn.Parameter(torch.ones(3))})
    assert list(chosen_parameters("f", model, ["a[1]"])) == ["a[1]"]
    assert list(chosen_parameters("f", model, ["a*"])) == ["a1", "a[1]"]
