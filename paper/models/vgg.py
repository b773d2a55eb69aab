"""VGG16 with batch norm for 32 × 32 images."""

from __future__ import annotations

from torch import Tensor, nn

from paper.models.making import divided

STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))  # channels and number of convolutions
HIDDEN = 4096


class VGG(nn.Module):
    """Stages of 3 × 3 convolutions with batch norm, each followed by a pool, then two hidden layers with dropout.

    Five pools reduce a 32 × 32 image to one pixel.

    Reference: Simonyan and Zisserman, ICLR 2015.
    """

    def __init__(self, num_classes: int, divisor: int) -> None:
        super().__init__()
        *widths, hidden = divided("vgg16", (*(width for width, _ in STAGES), HIDDEN), divisor)
        self.features = nn.Sequential()
        num_inputs = 3
        for width, (_, num_convolutions) in zip(widths, STAGES, strict=True):
            for _ in range(num_convolutions):
                self.features.append(nn.Conv2d(num_inputs, width, 3, padding=1))
                self.features.append(nn.BatchNorm2d(width))
                self.features.append(nn.ReLU(inplace=True))
                num_inputs = width
            self.features.append(nn.MaxPool2d(2))
        self.classifier = nn.Sequential(
            nn.Linear(num_inputs, hidden), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(hidden, num_classes),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        logits: Tensor = self.classifier(self.features(x).flatten(1))
        return logits


def vgg16(num_classes: int = 10, divisor: int = 1) -> VGG:
    """VGG16, 33,646,666 parameters for 10 classes; 532,690 with an eighth of every width.

    >>> [sum(p.numel() for p in vgg16(num_classes=n, divisor=8).parameters()) for n in (10, 100)]
    [532690, 578860]
    """
    return VGG(num_classes, divisor)
