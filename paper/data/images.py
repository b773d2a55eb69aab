"""Labelled images in memory, and random crops and flips that depend only on the seed, the epoch and the index.

In a given epoch an example is always the same image, whatever the batches, their order or the number of processes. A
resumed run sees the same images as one that was not stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from paper import checks

PIXEL_MEAN = (0.4914, 0.4822, 0.4465)
PIXEL_STD = (0.2023, 0.1994, 0.2010)
PADDING = 4
Words = npt.NDArray[np.uint64]


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


def random_words(seed: int, epoch: int, indices: Tensor) -> Words:
    """64 random bits per example: the finaliser of SplitMix64 applied to seed, epoch and index in turn.

    Reference: Steele, Lea and Flood, OOPSLA 2014.

    >>> random_words(0, 1, torch.tensor([5, 7]))[1] == random_words(0, 1, torch.tensor([7]))[0]
    np.True_
    """
    words = np.zeros(len(indices), dtype=np.uint64)
    for part in (np.uint64(seed), np.uint64(epoch), indices.cpu().numpy().astype(np.uint64)):
        words = _mixed(words + part + np.uint64(0x9E3779B97F4A7C15))
    return words


def _mixed(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def crop_and_flip(images: Tensor, indices: Tensor, seed: int, epoch: int, padding: int = PADDING) -> Tensor:
    """Pad each image with black pixels, crop it to its size at a random position, and flip it at random.

    The images are uint8 of shape (n, 3, height, width), and ``indices`` are their places in the training set.
    """
    for name, value in (("seed", seed), ("epoch", epoch), ("padding", padding)):
        checks.whole("crop_and_flip", name, value, minimum=0)
    if len(indices) != len(images):
        checks.refuse("crop_and_flip", "indices", f"one for each of {len(images)} images", f"{len(indices)} indices")
    words = random_words(seed, epoch, indices)
    top, left = (_below(2 * padding + 1, words >> np.uint64(shift)).to(images.device) for shift in (0, 24))
    mirrored = torch.from_numpy(words >> np.uint64(63) == 1).to(images.device)
    return _cut(F.pad(images, (padding,) * 4), top, left, mirrored, images.shape[2], images.shape[3])


def _below(count: int, words: Words) -> Tensor:
    """Integers in 0 … count - 1 from 24 bits each, uniform up to one part in 2²⁴ / count."""
    return torch.from_numpy(((words & np.uint64(0xFFFFFF)) % np.uint64(count)).astype(np.int64))


def _cut(padded: Tensor, top: Tensor, left: Tensor, mirrored: Tensor, height: int, width: int) -> Tensor:
    """Crop each image at (top, left) to height × width and flip it if ``mirrored``, in one gather."""
    num, channels, _, stride = padded.shape
    down, across = (torch.arange(size, device=padded.device) for size in (height, width))
    rows = top[:, None] + down
    columns = left[:, None] + torch.where(mirrored[:, None], across.flip(0), across)
    places = (rows[:, :, None] * stride + columns[:, None, :]).view(num, 1, height * width)
    cut = padded.flatten(2).gather(2, places.expand(-1, channels, -1))
    return cut.view(num, channels, height, width)


def normalise(images: Tensor, mean: tuple[float, ...] = PIXEL_MEAN, std: tuple[float, ...] = PIXEL_STD) -> Tensor:
    """Convert byte images to float32 and normalise each channel: (pixel / 255 - mean) / std.

    >>> normalise(torch.zeros(1, 3, 1, 1, dtype=torch.uint8), mean=(0.5, 0.5, 0.5), std=(0.25, 0.5, 1.0)).flatten()
    tensor([-2.0000, -1.0000, -0.5000])
    """
    center, scale = (255 * torch.tensor(values, device=images.device).view(-1, 1, 1) for values in (mean, std))
    return images.float().sub_(center).div_(scale)
