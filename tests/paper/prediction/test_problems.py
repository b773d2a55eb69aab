from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.paper.prediction.toys import checkpoint_file, images_file, random_weights, small_logistic, small_ridge
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from paper.data.images import normalise
from paper.models.resnet import resnet20
from paper.prediction import problems
from paper.prediction.problems import (
    NetworkSize,
    flat_weights,
    last_layer,
    network,
    resnet20_features,
    small_images,
    with_minimum,
)


def test_the_loss_is_that_of_the_ridge_problem():
    problem = small_ridge()
    weights = random_weights(problem)
    assert problem.loss(weights) == pytest.approx(problem.ridge.loss(weights.numpy()), rel=1e-12)
    assert problem.excess(weights) == pytest.approx(problem.ridge.gaps(weights.numpy()[:, None])[0], rel=1e-9)
    assert problem.dim == 7
    assert problem.first == "zero"


def test_the_operator_is_at_the_given_weights_and_leaves_the_model_alone():
    problem = small_logistic()
    before, weights = flat_weights(problem.model), random_weights(problem)
    operator = problem.operator_at(weights)
    dense = torch.autograd.functional.hessian(lambda w: problem.batch_loss(w, problem.inputs, problem.labels), weights)
    vector = random_weights(problem, seed=1)
    np.testing.assert_allclose(operator(vector), dense @ vector, rtol=1e-9)
    assert torch.equal(flat_weights(problem.model), before)


def test_the_digest_depends_on_what_runs_depend_on():
    assert small_logistic().digest == small_logistic().digest
    others = {small_logistic().digest, small_logistic((1.0, 0.5)).digest, small_ridge().digest, small_ridge(50).digest}
    assert len(others) == 4


def gradient_at(problem, weights):
    leaf = weights.clone().requires_grad_()
    return torch.autograd.grad(problem.objective(leaf), leaf)[0]


@pytest.mark.parametrize("problem", [small_ridge(), small_logistic()], ids=["ridge", "logistic"])
def test_the_end_is_the_minimum(problem):
    assert float(gradient_at(problem, problem.end).abs().max()) < 1e-9
    assert all(problem.excess(weights) > 0 for weights in problem.starts.values())


def test_starts_are_on_the_way_from_the_minimum_to_zero():
    problem = small_logistic((1.0, 0.25))
    assert list(problem.starts) == ["zero", "25 % away"]
    assert not problem.starts["zero"].any()
    np.testing.assert_allclose(problem.starts["25 % away"], 0.75 * problem.end)


def test_a_minimum_that_is_not_found_is_an_error():
    problem = small_logistic()
    # A linear loss without weight decay has no minimum.
    endless = replace(problem, loss_fn=lambda outputs, _labels: outputs.mean(), weight_decay=0.0)
    with pytest.raises(ArithmeticError, match="logistic: L-BFGS stopped at a gradient of"):
        with_minimum(endless, (1.0,))


def test_the_last_layer_sees_the_features_of_the_network(tmp_path):
    model = resnet20().eval()
    folder = checkpoint_file(images_file(tmp_path), model)
    features, labels = resnet20_features(folder, num_images=12)
    with np.load(folder / "cifar10_lossless_subset.npz") as archive, torch.no_grad():
        logits = model(normalise(torch.from_numpy(archive["train_images"][:12])))
    np.testing.assert_allclose(model.fc(features.float()).detach(), logits, atol=1e-5)  # float32
    assert labels.tolist() == [*range(10), 0, 1]
    problem = last_layer(folder, num_images=12)
    assert problem.dim == 650
    assert problem.loss(problem.starts["zero"]) == pytest.approx(np.log(10))
    weight, bias = problem.end[:640].view(10, 64), problem.end[640:]
    by_hand = F.cross_entropy(features @ weight.T + bias, labels) + 2.5e-4 * problem.end.square().sum()
    assert problem.end_loss == pytest.approx(float(by_hand))


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"checkpoints/resnet20_cifar10\.npz is missing"):
        last_layer(images_file(tmp_path))


SIZE = NetworkSize(num_images=30, hidden=(5,), earlier_steps=20)


@pytest.fixture
def folder(tmp_path):
    return images_file(tmp_path)


def test_images_are_averaged_over_squares(folder):
    inputs, labels = small_images(folder, 3)
    assert inputs.shape == (3, 3 * 8 * 8)
    assert labels.tolist() == [0, 1, 2]
    with np.load(folder / "cifar10_lossless_subset.npz") as archive:
        corner = archive["train_images"][0, 0, :4, :4].mean() / 255
    assert float(inputs[0, 0]) == pytest.approx((corner - 0.4914) / 0.2023, rel=1e-5)


def test_points_are_those_of_ordinary_training(folder):
    """The earlier run is PyTorch's SGD with the same examples; its points are its weights after 0, 2, 10 ... steps."""
    problem = network(folder, SIZE, folder)
    model = nn.Sequential(nn.Linear(192, 5), nn.ReLU(), nn.Linear(5, 10))
    nn.utils.vector_to_parameters(problem.starts["start"].clone(), model.parameters())
    schedule, source = ec.cosine(20, problems.EARLIER_RATE), np.random.default_rng(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, weight_decay=problems.NETWORK_DECAY)
    points = []
    for step in range(20):
        points.append(flat_weights(model).clone())
        examples = source.integers(0, 30, problems.NETWORK_BATCH)
        optimizer.param_groups[0]["lr"] = schedule(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(problem.inputs[examples]), problem.labels[examples]).backward()
        optimizer.step()
    expected = {"start": points[0], "after 10 %": points[2], "after 50 %": points[10], "end": flat_weights(model)}
    assert list(problem.starts) == list(expected)
    for name, weights in expected.items():
        np.testing.assert_allclose(problem.starts[name], weights, atol=1e-5)  # float32
    assert torch.equal(problem.end, problem.starts["end"])
    assert not problem.is_minimum


def test_the_earlier_run_is_kept(folder, monkeypatch):
    first = network(folder, SIZE, folder)
    monkeypatch.setattr(problems, "earlier_run", lambda *_: pytest.fail("it was run again"))
    assert network(folder, SIZE, folder).digest == first.digest
