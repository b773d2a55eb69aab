"""ResNet-18 and ResNet-50 for ImageNet; parameters are named as torchvision names them."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from eigencurve.experiments.models.resnet import BasicBlock
from eigencurve.experiments.models.widths import divided

WIDTHS = (64, 128, 256, 512)
EXPANSION = 4


class Bottleneck(nn.Module):
    """1 × 1, 3 × 3 and 1 × 1 convolutions with batch norm; the 3 × 3 one has the stride.

    (The paper of the network puts the stride in the first; every current implementation moves it.)
    """

    def __init__(self, num_inputs: int, width: int, stride: int) -> None:
        super().__init__()
        num_outputs = EXPANSION * width
        self.conv1 = nn.Conv2d(num_inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, num_outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(num_outputs)
        self.downsample = nn.Sequential()
        if stride != 1 or num_inputs != num_outputs:
            self.downsample.append(nn.Conv2d(num_inputs, num_outputs, 1, stride, bias=False))
            self.downsample.append(nn.BatchNorm2d(num_outputs))

    def forward(self, x: Tensor) -> Tensor:
        """The block's outputs."""
        inner = F.relu(self.bn1(self.conv1(x)))
        inner = F.relu(self.bn2(self.conv2(inner)))
        return F.relu(self.bn3(self.conv3(inner)) + self.downsample(x))


class ImageNetResNet(nn.Module):
    """A 7 × 7 convolution and a pool that quarter the image, four stages of blocks, a mean and a linear layer.

    Args:
        bottleneck: whether the blocks are bottlenecks, four times as wide outside as inside, or basic ones.
        widths: of the four stages.
        num_blocks: in each stage.
        num_classes: of the labels.

    Reference: He, Zhang, Ren and Sun, CVPR 2016.
    """

    def __init__(self, bottleneck: bool, widths: tuple[int, ...], num_blocks: tuple[int, ...], num_classes: int):
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        block, expansion = (Bottleneck, EXPANSION) if bottleneck else (BasicBlock, 1)
        num_inputs = widths[0]
        for i, (width, depth) in enumerate(zip(widths, num_blocks, strict=True), start=1):
            first = block(num_inputs, width, 1 if i == 1 else 2)
            rest = [block(expansion * width, width, 1) for _ in range(depth - 1)]
            self.add_module(f"layer{i}", nn.Sequential(first, *rest))
            num_inputs = expansion * width
        self.num_stages = len(widths)
        self.fc = nn.Linear(num_inputs, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, stride=2, padding=1)
        for i in range(1, self.num_stages + 1):
            x = self.get_submodule(f"layer{i}")(x)
        logits: Tensor = self.fc(x.mean((2, 3)))
        return logits


def imagenet_resnet18(num_classes: int = 1000, divisor: int = 1) -> ImageNetResNet:
    """ResNet-18, 11,689,512 parameters.

    >>> sum(p.numel() for p in imagenet_resnet18().parameters())
    11689512
    """
    return ImageNetResNet(False, divided("imagenet_resnet18", WIDTHS, divisor), (2, 2, 2, 2), num_classes)


def imagenet_resnet50(num_classes: int = 1000, divisor: int = 1) -> ImageNetResNet:
    """ResNet-50, 25,557,032 parameters.

    >>> sum(p.numel() for p in imagenet_resnet50().parameters())
    25557032
    """
    return ImageNetResNet(True, divided("imagenet_resnet50", WIDTHS, divisor), (3, 4, 6, 3), num_classes)
