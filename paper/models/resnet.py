"""Residual networks: ResNet-20 and ResNet-18 for 32 × 32 images, ResNet-18 and ResNet-50 for ImageNet.

Parameters have the names that torchvision uses.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paper.data.folder import data_file
from paper.data.images import normalise
from paper.models.making import divided

WIDTHS = (64, 128, 256, 512)
# The trained ResNet-20 and its images, in the data folder.
CHECKPOINT, IMAGES = "checkpoints/resnet20_cifar10.npz", "cifar10_lossless_subset.npz"


class BasicBlock(nn.Module):
    """Two 3 × 3 convolutions with batch norm, and a shortcut.

    Reference: He, Zhang, Ren and Sun, CVPR 2016.
    """

    expansion = 1

    def __init__(self, num_inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(num_inputs, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(num_inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """The outputs of the block."""
        inner = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(inner + self.downsample(x))


class Bottleneck(nn.Module):
    """1 × 1, 3 × 3 and 1 × 1 convolutions with batch norm, and a shortcut; the outputs are four times as wide.

    The 3 × 3 convolution has the stride, as in all current implementations; in the original paper it is the first.
    """

    expansion = 4

    def __init__(self, num_inputs: int, width: int, stride: int) -> None:
        super().__init__()
        num_outputs = self.expansion * width
        self.conv1 = nn.Conv2d(num_inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, num_outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(num_outputs)
        self.downsample = shortcut(num_inputs, num_outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        """The outputs of the block."""
        inner = F.relu(self.bn1(self.conv1(x)))
        inner = F.relu(self.bn2(self.conv2(inner)))
        return F.relu(self.bn3(self.conv3(inner)) + self.downsample(x))


def shortcut(num_inputs: int, num_outputs: int, stride: int) -> nn.Sequential:
    """The shortcut of a block: the identity, or a 1 × 1 convolution with batch norm if the shape changes."""
    if stride == 1 and num_inputs == num_outputs:
        return nn.Sequential()
    conv = nn.Conv2d(num_inputs, num_outputs, 1, stride, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(num_outputs))


class ResNet(nn.Module):
    """A stem, stages of residual blocks that halve the image, global average pooling and a linear layer.

    Args:
        block: Class of the blocks.
        widths: Width of each stage; the first is also that of the stem.
        num_blocks: Number of blocks in each stage.
        num_classes: Number of classes.
        for_imagenet: Whether the stem is ImageNet's, a strided 7 × 7 convolution and a pool, instead of a 3 × 3
            convolution. It also selects He's initialisation of the convolutions.
    """

    def __init__(
        self, block: type[BasicBlock] | type[Bottleneck], widths: tuple[int, ...], num_blocks: tuple[int, ...],
        num_classes: int, for_imagenet: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        size, stride = (7, 2) if for_imagenet else (3, 1)
        self.conv1 = nn.Conv2d(3, widths[0], size, stride, padding=size // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.pool = nn.MaxPool2d(3, stride=2, padding=1) if for_imagenet else nn.Identity()
        num_inputs = widths[0]
        for i, (width, depth) in enumerate(zip(widths, num_blocks, strict=True), start=1):
            first = block(num_inputs, width, stride=1 if i == 1 else 2)
            num_inputs = block.expansion * width
            rest = [block(num_inputs, width, stride=1) for _ in range(depth - 1)]
            self.add_module(f"layer{i}", nn.Sequential(first, *rest))
        self.num_stages = len(widths)
        self.fc = nn.Linear(num_inputs, num_classes)
        for module in self.modules() if for_imagenet else ():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        for i in range(1, self.num_stages + 1):
            x = self.get_submodule(f"layer{i}")(x)
        logits: Tensor = self.fc(x.mean((2, 3)))
        return logits


def resnet20(num_classes: int = 10, divisor: int = 1) -> ResNet:
    """ResNet-20 for 32 × 32 images, 272,474 parameters.

    >>> sum(p.numel() for p in resnet20().parameters())
    272474
    """
    return ResNet(BasicBlock, divided("resnet20", (16, 32, 64), divisor), (3, 3, 3), num_classes)


def resnet18(num_classes: int = 10, divisor: int = 1) -> ResNet:
    """ResNet-18 for 32 × 32 images, 11,173,962 parameters; 44,622 with a sixteenth of the channels.

    >>> sum(p.numel() for p in resnet18().parameters())
    11173962
    >>> sum(p.numel() for p in resnet18(divisor=16).parameters())
    44622
    """
    return ResNet(BasicBlock, divided("resnet18", WIDTHS, divisor), (2, 2, 2, 2), num_classes)


def imagenet_resnet18(num_classes: int = 1000, divisor: int = 1) -> ResNet:
    """ResNet-18 for ImageNet, 11,689,512 parameters.

    >>> sum(p.numel() for p in imagenet_resnet18().parameters())
    11689512
    """
    return ResNet(BasicBlock, divided("imagenet_resnet18", WIDTHS, divisor), (2, 2, 2, 2), num_classes, True)


def imagenet_resnet50(num_classes: int = 1000, divisor: int = 1) -> ResNet:
    """ResNet-50 for ImageNet, 25,557,032 parameters.

    >>> sum(p.numel() for p in imagenet_resnet50().parameters())
    25557032
    """
    return ResNet(Bottleneck, divided("imagenet_resnet50", WIDTHS, divisor), (3, 4, 6, 3), num_classes, True)


def load_npz(model: nn.Module, path: str | os.PathLike[str]) -> None:
    """Load parameters and buffers by name from an .npz archive of arrays; every name must be present."""
    with np.load(path, allow_pickle=False) as archive:
        model.load_state_dict({name: torch.from_numpy(archive[name]) for name in archive.files})


def cifar_batch(data: Path | None, num_images: int | None = None) -> tuple[Tensor, Tensor]:
    """The first training images, normalised, and their labels; None takes all of them."""
    with np.load(data_file(IMAGES, data), allow_pickle=False) as archive:
        images, labels = archive["train_images"][:num_images], archive["train_labels"][:num_images]
    return normalise(torch.from_numpy(images)), torch.from_numpy(labels).long()


def trained_resnet20(data: Path | None) -> nn.Module:
    """The trained ResNet-20."""
    model = resnet20()
    load_npz(model, data_file(CHECKPOINT, data))
    return model


def resnet20_problem(
    data: Path | None, num_images: int
) -> tuple[nn.Module, Callable[..., Tensor], tuple[Tensor, Tensor]]:
    """The trained ResNet-20, its loss and its first training images."""
    return trained_resnet20(data), F.cross_entropy, cifar_batch(data, num_images)
