import numpy as np
import pytest
import torch

from eigencurve.experiments.models.resnet import load_npz, resnet20
from eigencurve.experiments.studies.resnet20_spectrum import cifar_batch


def test_the_real_checkpoint_knows_its_images(data_path):
    model = resnet20()
    load_npz(model, data_path("checkpoints/resnet20_cifar10.npz"))
    x, y = cifar_batch(data_path("cifar10_lossless_subset.npz"))
    with torch.no_grad():
        accuracy = (model.eval()(x).argmax(1) == y).double().mean().item()
    assert accuracy > 0.95  # training images of a network with 92 % test accuracy


def test_checkpoints_with_missing_names_are_refused(tmp_path):
    np.savez(tmp_path / "short.npz", **{"fc.bias": np.zeros(10, dtype=np.float32)})
    with pytest.raises(RuntimeError, match="Missing key"):
        load_npz(resnet20(), tmp_path / "short.npz")
