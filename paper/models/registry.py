"""The networks by name."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from paper import checks
from paper.models.googlenet import googlenet
from paper.models.making import drawn_from
from paper.models.resnet import imagenet_resnet18, imagenet_resnet50, resnet18, resnet20
from paper.models.transformer import transformer
from paper.models.vgg import vgg16

MODELS: dict[str, Callable[..., nn.Module]] = {
    "resnet18": resnet18,
    "resnet20": resnet20,
    "googlenet": googlenet,
    "vgg16": vgg16,
    "imagenet_resnet18": imagenet_resnet18,
    "imagenet_resnet50": imagenet_resnet50,
    "transformer": transformer,
}


def build(name: str, num_classes: int, divisor: int = 1, seed: int = 0) -> nn.Module:
    """The network ``name`` with weights drawn from ``seed``; PyTorch's global random state does not change.

    >>> first, again = (build("resnet20", 10, divisor=4, seed=1) for _ in range(2))
    >>> bool((first.conv1.weight == again.conv1.weight).all())
    True
    """
    constructor = MODELS[checks.choice("build", "name", name, list(MODELS))]
    checks.whole("build", "num_classes", num_classes, minimum=1)
    with drawn_from(seed):
        return constructor(num_classes=num_classes, divisor=divisor)
