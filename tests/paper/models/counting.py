"""Sizes of networks, without memory for their weights."""

import torch

from paper.models.registry import MODELS


def num_parameters(name, num_classes, divisor):
    with torch.device("meta"):  # shapes without numbers
        model = MODELS[name](num_classes=num_classes, divisor=divisor)
    return sum(p.numel() for p in model.parameters())
