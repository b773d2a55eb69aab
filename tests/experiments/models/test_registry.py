import numpy as np
import pytest
import torch

from eigencurve.experiments.data.augment import normalise
from eigencurve.experiments.models.registry import MODELS, build
from eigencurve.experiments.models.resnet import load_npz, resnet20

# By hand from the networks' tables, and as their users know them.
COUNTS = [
    ("resnet18", 10, 1, 11_173_962),
    ("resnet20", 10, 1, 272_474),
    ("googlenet", 10, 1, 6_166_250),
    ("googlenet", 10, 4, 392_738),
    ("vgg16", 10, 8, 532_690),
    ("vgg16", 100, 8, 578_860),
    ("imagenet_resnet18", 1000, 1, 11_689_512),
    ("imagenet_resnet50", 1000, 1, 25_557_032),
]


@pytest.mark.parametrize(("name", "num_classes", "divisor", "count"), COUNTS)
def test_number_of_parameters(name, num_classes, divisor, count):
    with torch.device("meta"):  # shapes without numbers
        model = MODELS[name](num_classes=num_classes, divisor=divisor)
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.mark.parametrize("name", MODELS)
def test_logits_and_gradients_of_every_network(name):
    size = 64 if name.startswith("imagenet") else 32
    model = build(name, num_classes=7, divisor=16)
    logits = model(torch.randn(4, 3, size, size))
    assert logits.shape == (4, 7)
    logits.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_weights_come_from_the_seed_alone(name):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    one, again, other = (build(name, 10, divisor=16, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    for key, value in one.state_dict().items():
        assert torch.equal(value, again.state_dict()[key])
    assert any(not torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_divisors_that_leave_no_channel_are_refused(name):
    with pytest.raises(ValueError, match=rf"{name}: 'divisor' must be <= \d+, the smallest width, got 100"):
        build(name, 10, divisor=100)
    with pytest.raises(ValueError, match=rf"{name}: 'divisor' must be >= 1, got 0"):
        build(name, 10, divisor=0)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"build: 'name' must be one of 'resnet18', .* got 'resnet19'"):
        build("resnet19", 10)


def test_imagenet_networks_have_the_names_of_published_weights():
    # As listed in the state dicts that torchvision publishes.
    with torch.device("meta"):
        small, large = MODELS["imagenet_resnet18"]().state_dict(), MODELS["imagenet_resnet50"]().state_dict()
    assert (len(small), len(large)) == (122, 320)
    assert small["conv1.weight"].shape == (64, 3, 7, 7)
    assert small["layer2.0.downsample.0.weight"].shape == (128, 64, 1, 1)
    assert "layer1.0.downsample.0.weight" not in small
    assert large["layer1.0.downsample.1.running_mean"].shape == (256,)
    assert large["layer4.2.conv3.weight"].shape == (2048, 512, 1, 1)
    assert large["layer3.5.bn2.num_batches_tracked"].shape == ()
    assert large["fc.weight"].shape == (1000, 2048)


def test_a_bottleneck_has_its_stride_in_the_middle():
    with torch.device("meta"):
        block = MODELS["imagenet_resnet50"]().layer2[0]
    assert [block.conv1.stride, block.conv2.stride, block.conv3.stride] == [(1, 1), (2, 2), (1, 1)]


def test_the_trained_resnet20_scores_92_percent_on_test_images(data_path):
    model = resnet20()
    load_npz(model, data_path("checkpoints/resnet20_cifar10.npz"))
    with np.load(data_path("cifar10_lossless_subset.npz"), allow_pickle=False) as archive:
        images, labels = torch.from_numpy(archive["test_images"]), archive["test_labels"]
    with torch.no_grad():
        guesses = model.eval()(normalise(images)).argmax(1).numpy()
    assert (guesses == labels).mean() == pytest.approx(0.92, abs=0.005)
