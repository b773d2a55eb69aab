"""Small image data for the tests of the image experiments."""

import numpy as np
import torch

from eigencurve import Spectrum
from paper.data.images import ImageSet
from paper.images.experiment import ImageData

SPECTRUM = Spectrum([-0.1, 0.0, 0.01, 0.3, 5.0], [0.2, 0.5, 0.2, 0.09, 0.01])


def images(num, seed=0, classes=10):
    rng = np.random.default_rng(seed)
    labels = torch.from_numpy(rng.integers(0, classes, num))
    pixels = rng.integers(0, 200, (num, 3, 32, 32), dtype=np.uint8)
    pixels[:, 0] += (5 * labels.numpy()[:, None, None]).astype(np.uint8)
    return ImageSet(torch.from_numpy(pixels), labels, classes, "noise")


def data(num_train=40, num_validation=10):
    return ImageData(images(num_train), images(12, seed=1), num_validation)


def settings(**changes):
    usual = {
        "model": "resnet18", "divisor": 16, "split": "test", "epochs": 2, "batch_size": 16, "momentum": 0.0,
        "weight_decay": 5e-4, "evaluate_every": 1, "schedule": "cosine", "lr": 0.1, "min_lr": 0.0,
    }  # fmt: skip
    return usual | changes
