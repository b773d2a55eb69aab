"""The trained ResNet-20 and its images, from the data folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paper.data.folder import data_file
from paper.data.images import normalise
from paper.models.resnet import load_npz, resnet20

CHECKPOINT, IMAGES = "checkpoints/resnet20_cifar10.npz", "cifar10_lossless_subset.npz"


def cifar_batch(data: Path | None, num_images: int | None = None) -> tuple[Tensor, Tensor]:
    """The first training images, normalised, and their labels; None takes all of them."""
    with np.load(data_file(IMAGES, data), allow_pickle=False) as archive:
        images, labels = archive["train_images"][:num_images], archive["train_labels"][:num_images]
    return normalise(torch.from_numpy(images)), torch.from_numpy(labels).long()


def trained_resnet20(data: Path | None) -> nn.Module:
    """The trained network."""
    model = resnet20()
    load_npz(model, data_file(CHECKPOINT, data))
    return model


def resnet20_problem(
    data: Path | None, num_images: int
) -> tuple[nn.Module, Callable[..., Tensor], tuple[Tensor, Tensor]]:
    """The trained network, its loss and its first training images."""
    return trained_resnet20(data), F.cross_entropy, cifar_batch(data, num_images)
