import pytest
import torch
from tests.paper.models.counting import num_parameters
from torch import nn

from paper.models.vgg import vgg16


@pytest.mark.parametrize(
    ("num_classes", "divisor", "count"), [(10, 1, 33_646_666), (10, 8, 532_690), (100, 8, 578_860)]
)
def test_the_number_of_parameters_is_the_known_one(num_classes, divisor, count):
    assert num_parameters("vgg16", num_classes, divisor) == count


def test_it_has_sixteen_layers_and_ends_at_one_pixel():
    with torch.device("meta"):
        model = vgg16(divisor=8)
        found = model.features(torch.zeros(1, 3, 32, 32))
    assert sum(isinstance(layer, nn.Conv2d | nn.Linear) for layer in model.modules()) == 16
    assert found.shape == (1, 64, 1, 1)


def test_half_of_both_hidden_layers_is_dropped_in_training_only():
    model, x = vgg16(divisor=16), torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert [layer.p for layer in model.modules() if isinstance(layer, nn.Dropout)] == [0.5, 0.5]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        assert not torch.equal(model(x), model(x))
        model.eval()
        assert torch.equal(model(x), model(x))
