"""Labelled images in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from paper import checks


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Byte images and their labels.

    >>> images = ImageSet(torch.zeros(4, 3, 2, 2, dtype=torch.uint8), torch.tensor([0, 1, 2, 0]), 3, "black")
    >>> images.subset([2, 0]).labels
    tensor([2, 0])
    """

    images: Tensor  # images, uint8, shape (n, 3, height, width)
    labels: Tensor  # labels, int64, in 0 … num_classes - 1
    num_classes: int  # number of classes
    name: str  # name for reports

    def __post_init__(self) -> None:
        checks.whole("ImageSet", "num_classes", self.num_classes, minimum=1)
        if self.images.dtype != torch.uint8 or self.images.ndim != 4 or self.images.shape[1] != 3:
            found = f"{self.images.dtype} {tuple(self.images.shape)}"
            checks.refuse("ImageSet", "images", "uint8 of shape (n, 3, height, width)", found)
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            found = f"{self.labels.dtype} {tuple(self.labels.shape)}"
            checks.refuse("ImageSet", "labels", f"int64 of shape ({len(self.images)},)", found)
        outside = (self.labels < 0) | (self.labels >= self.num_classes)
        if outside.any():
            place = int(outside.nonzero()[0])
            constraint = f"in 0 … {self.num_classes - 1}"
            checks.refuse(
                "ImageSet", "labels", constraint, int(self.labels[place]), f"It is the label of image {place}."
            )

    def __len__(self) -> int:
        return len(self.images)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 hash of all pixels and labels; it does not depend on the name."""
        found = hashlib.sha256(f"{tuple(self.images.shape)} {self.num_classes}".encode())
        for part in (self.images, self.labels):
            found.update(part.cpu().contiguous().numpy().data)
        return found.hexdigest()

    def subset(self, indices: Tensor | Sequence[int]) -> ImageSet:
        """The images at ``indices``, in that order."""
        chosen = torch.as_tensor(indices, dtype=torch.int64)
        return ImageSet(self.images[chosen], self.labels[chosen], self.num_classes, self.name)
