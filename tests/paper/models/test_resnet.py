import numpy as np
import pytest
import torch
from tests.paper.models.counting import num_parameters

from paper.data.images import normalise
from paper.models.registry import MODELS
from paper.models.resnet import cifar_batch, load_npz, resnet20


def test_the_real_checkpoint_knows_its_images(data_path):
    model = resnet20()
    load_npz(model, data_path("checkpoints/resnet20_cifar10.npz"))
    x, y = cifar_batch(data_path("cifar10_lossless_subset.npz").parent, 200)
    with torch.no_grad():
        accuracy = (model.eval()(x).argmax(1) == y).double().mean().item()
    assert accuracy > 0.95  # training images of a network with 92 % test accuracy


def test_checkpoints_with_missing_names_are_refused(tmp_path):
    np.savez(tmp_path / "short.npz", **{"fc.bias": np.zeros(10, dtype=np.float32)})
    with pytest.raises(RuntimeError, match="Missing key"):
        load_npz(resnet20(), tmp_path / "short.npz")


@pytest.mark.parametrize(
    ("name", "num_classes", "count"),
    [
        ("resnet18", 10, 11_173_962),
        ("resnet20", 10, 272_474),
        ("imagenet_resnet18", 1000, 11_689_512),
        ("imagenet_resnet50", 1000, 25_557_032),
    ],
)
def test_the_number_of_parameters_is_the_known_one(name, num_classes, count):
    assert num_parameters(name, num_classes, divisor=1) == count


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
