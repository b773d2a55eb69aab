import numpy as np
import pytest
import torch
from tests.paper.prediction.toys import images_file
from torch import nn

import eigencurve as ec
from paper.prediction import network as module
from paper.prediction.network import NetworkSize, network, small_images
from paper.prediction.problems import flat_weights

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
    schedule, source = ec.cosine(20, module.EARLIER_RATE), np.random.default_rng(module.SEED)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, weight_decay=module.WEIGHT_DECAY)
    points = []
    for step in range(20):
        points.append(flat_weights(model).clone())
        examples = source.integers(0, 30, module.BATCH_SIZE)
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
    monkeypatch.setattr(module, "earlier_run", lambda *_: pytest.fail("it was run again"))
    assert network(folder, SIZE, folder).digest == first.digest
