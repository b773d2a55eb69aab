"""Labelled images in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from eigencurve import _check


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images as bytes, and their labels.

    Attributes:
        images: uint8, (n, 3, height, width).
        labels: int64, in 0 … num_classes - 1.
        num_classes: of the labels.
        name: for reports.

    >>> images = ImageSet(torch.zeros(4, 3, 2, 2, dtype=torch.uint8), torch.tensor([0, 1, 2, 0]), 3, "black")
    >>> [len(part) for part in images.split(num_validation=1, seed=0)]
    [3, 1]
    """

    images: Tensor
    labels: Tensor
    num_classes: int
    name: str

    def __post_init__(self) -> None:
        _check.whole("ImageSet", "num_classes", self.num_classes, minimum=1)
        if self.images.dtype != torch.uint8 or self.images.ndim != 4 or self.images.shape[1] != 3:
            found = f"{self.images.dtype} {tuple(self.images.shape)}"
            _check.refuse("ImageSet", "images", "uint8 of shape (n, 3, height, width)", found)
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            found = f"{self.labels.dtype} {tuple(self.labels.shape)}"
            _check.refuse("ImageSet", "labels", f"int64 of shape ({len(self.images)},)", found)
        outside = (self.labels < 0) | (self.labels >= self.num_classes)
        if outside.any():
            place = int(outside.nonzero()[0])
            constraint = f"in 0 … {self.num_classes - 1}"
            _check.refuse("ImageSet", "labels", constraint, int(self.labels[place]), f"It is that of image {place}.")

    def __len__(self) -> int:
        return len(self.images)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all pixels and labels: the same images under another name have the same."""
        found = hashlib.sha256(f"{tuple(self.images.shape)} {self.num_classes}".encode())
        for part in (self.images, self.labels):
            found.update(part.cpu().contiguous().numpy().data)
        return found.hexdigest()

    def subset(self, indices: Tensor | Sequence[int]) -> ImageSet:
        """The images at ``indices``, in that order."""
        chosen = torch.as_tensor(indices, dtype=torch.int64)
        return ImageSet(self.images[chosen], self.labels[chosen], self.num_classes, self.name)

    def split(self, num_validation: int, seed: int) -> tuple[ImageSet, ImageSet]:
        """The images without ``num_validation`` of them chosen at random, and those; each in the order it had."""
        _check.whole("split", "num_validation", num_validation, minimum=0)
        if num_validation >= len(self):
            _check.refuse("split", "num_validation", f"< {len(self)}, the number of images", num_validation)
        order = np.random.default_rng(seed).permutation(len(self))
        kept, held_out = np.sort(order[num_validation:]), np.sort(order[:num_validation])
        return self.subset(torch.from_numpy(kept)), self.subset(torch.from_numpy(held_out))
