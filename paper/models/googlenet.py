"""GoogLeNet with batch norm for 32 × 32 images."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from paper.models.making import divided

STEM = 192
# The original table. Channels of the 1 × 1 branch; before and in the 3 × 3; before and in the 5 × 5; after the pool.
MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
POOLED_AFTER = ("3b", "4e")


def convolution(num_inputs: int, num_outputs: int, size: int) -> nn.Sequential:
    """A convolution that keeps the size of the image, followed by batch norm and ReLU."""
    conv = nn.Conv2d(num_inputs, num_outputs, size, padding=size // 2)
    return nn.Sequential(conv, nn.BatchNorm2d(num_outputs), nn.ReLU(inplace=True))


class Inception(nn.Module):
    """Four parallel branches; the 5 × 5 convolution is replaced by two 3 × 3.

    Args:
        num_inputs: Number of input channels.
        widths: A row of the table ``MODULES``.
    """

    def __init__(self, num_inputs: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        one, before_three, three, before_five, five, pooled = widths
        self.branch1 = convolution(num_inputs, one, 1)
        self.branch3 = nn.Sequential(convolution(num_inputs, before_three, 1), convolution(before_three, three, 3))
        self.branch5 = nn.Sequential(
            convolution(num_inputs, before_five, 1), convolution(before_five, five, 3), convolution(five, five, 3)
        )
        self.branch_pool = nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), convolution(num_inputs, pooled, 1))
        self.num_outputs = one + three + five + pooled

    def forward(self, x: Tensor) -> Tensor:
        """The concatenated channels of the branches."""
        return torch.cat([self.branch1(x), self.branch3(x), self.branch5(x), self.branch_pool(x)], 1)


class GoogLeNet(nn.Module):
    """A 3 × 3 convolution, nine inception modules with two pools, global average pooling and a linear layer.

    As usual for CIFAR, the 3 × 3 stem replaces the original 7 × 7 convolution and pools, made for 224 × 224 images.

    Reference: Szegedy et al., CVPR 2015.
    """

    def __init__(self, num_classes: int, divisor: int) -> None:
        super().__init__()
        (width,) = divided("googlenet", (STEM,), divisor)
        self.stem = convolution(3, width, 3)
        self.body = nn.Sequential()
        for name, widths in MODULES.items():
            module = Inception(width, divided("googlenet", widths, divisor))
            self.body.add_module(f"inception{name}", module)
            if name in POOLED_AFTER:
                self.body.add_module(f"pool{name}", nn.MaxPool2d(3, stride=2, padding=1))
            width = module.num_outputs
        self.fc = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        logits: Tensor = self.fc(self.body(self.stem(x)).mean((2, 3)))
        return logits


def googlenet(num_classes: int = 10, divisor: int = 1) -> GoogLeNet:
    """GoogLeNet, 6,166,250 parameters for 10 classes; 392,738 with a quarter of the channels.

    >>> [sum(p.numel() for p in googlenet(divisor=c).parameters()) for c in (1, 4)]
    [6166250, 392738]
    """
    return GoogLeNet(num_classes, divisor)
