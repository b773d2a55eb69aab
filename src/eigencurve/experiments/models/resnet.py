"""Residual networks for 32 × 32 images: ResNet-20 and the 11-million-parameter ResNet-18."""

from __future__ import annotations

import os

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eigencurve.experiments.models.widths import divided


class BasicBlock(nn.Module):
    """Two 3 × 3 convolutions with batch norm, and a shortcut by a 1 × 1 convolution where the shape changes.

    Reference: He, Zhang, Ren and Sun, CVPR 2016.
    """

    def __init__(self, num_inputs: int, num_outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(num_inputs, num_outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(num_outputs)
        self.conv2 = nn.Conv2d(num_outputs, num_outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(num_outputs)
        self.downsample = nn.Sequential()
        if stride != 1 or num_inputs != num_outputs:
            self.downsample.append(nn.Conv2d(num_inputs, num_outputs, 1, stride, bias=False))
            self.downsample.append(nn.BatchNorm2d(num_outputs))

    def forward(self, x: Tensor) -> Tensor:
        """The block's outputs."""
        inner = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(inner + self.downsample(x))


class ResNet(nn.Module):
    """A stem, stages of basic blocks that halve the image, a mean over it and a linear layer.

    Args:
        widths: the channels of each stage; the first is also the stem's.
        num_blocks: in every stage.
        num_classes: of the labels.
    """

    def __init__(self, widths: tuple[int, ...], num_blocks: int, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        inputs = (widths[0], *widths[:-1])
        for i, (num_inputs, width) in enumerate(zip(inputs, widths, strict=True), start=1):
            first = BasicBlock(num_inputs, width, stride=1 if i == 1 else 2)
            rest = [BasicBlock(width, width, stride=1) for _ in range(num_blocks - 1)]
            self.add_module(f"layer{i}", nn.Sequential(first, *rest))
        self.num_stages = len(widths)
        self.fc = nn.Linear(widths[-1], num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        x = F.relu(self.bn1(self.conv1(x)))
        for i in range(1, self.num_stages + 1):
            x = self.get_submodule(f"layer{i}")(x)
        logits: Tensor = self.fc(x.mean((2, 3)))
        return logits


def resnet20(num_classes: int = 10, divisor: int = 1) -> ResNet:
    """ResNet-20 for 32 × 32 images, 272,474 parameters.

    >>> sum(p.numel() for p in resnet20().parameters())
    272474
    """
    return ResNet(divided("resnet20", (16, 32, 64), divisor), num_blocks=3, num_classes=num_classes)


def resnet18(num_classes: int = 10, divisor: int = 1) -> ResNet:
    """ResNet-18 for 32 × 32 images, 11,173,962 parameters; 44,622 with a sixteenth of the channels.

    >>> sum(p.numel() for p in resnet18().parameters())
    11173962
    >>> sum(p.numel() for p in resnet18(divisor=16).parameters())
    44622
    """
    return ResNet(divided("resnet18", (64, 128, 256, 512), divisor), num_blocks=2, num_classes=num_classes)


def load_npz(model: nn.Module, path: str | os.PathLike[str]) -> None:
    """Load parameters and buffers by name from an .npz archive of plain arrays; every name must be there."""
    with np.load(path, allow_pickle=False) as archive:
        model.load_state_dict({name: torch.from_numpy(archive[name]) for name in archive.files})
