"""Image classification as a training task: augmented batches, cross entropy, and accuracy on held-out images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eigencurve.hessian import crashes_channels_last
from paper.data.imagenet import (
    CROP,
    IMAGENET_MEAN,
    IMAGENET_STD,
    SHORTER_SIDE,
    CenterCrop,
    ImageFolder,
    TrainingCrop,
    read_batches,
)
from paper.data.images import ImageSet, crop_and_flip, normalise
from paper.training.task import Batch, Part, Task, Total

CPU = torch.device("cpu")
Pairs = Iterator[tuple[Tensor, Tensor]]


class Images(Protocol):
    """Labelled images, in memory or in files."""

    def __len__(self) -> int: ...
    def augmented(self, batches: Iterable[Tensor], seed: int, epoch: int) -> Pairs:
        """Augmented images and labels for each batch of indices; the augmentation depends on seed, epoch and index."""

    def plain(self, batches: Iterable[Tensor]) -> Pairs:
        """Images without augmentation and labels, for each batch of indices."""


@dataclass(frozen=True, eq=False)
class CifarImages:
    """Images in memory; augmentation pads by four pixels, crops and flips at random."""

    images: ImageSet

    def __len__(self) -> int:
        return len(self.images)

    def augmented(self, batches: Iterable[Tensor], seed: int, epoch: int) -> Pairs:
        """Images cropped and flipped at random, and labels."""
        for indices in batches:
            cut = crop_and_flip(self.images.images[indices], indices, seed, epoch)
            yield normalise(cut), self.images.labels[indices]

    def plain(self, batches: Iterable[Tensor]) -> Pairs:
        """Unchanged images, and labels."""
        for indices in batches:
            yield normalise(self.images.images[indices]), self.images.labels[indices]


@dataclass(frozen=True, eq=False)
class ImageNetImages:
    """Images in files, decoded ahead of the training; random crops for training, centre crops otherwise."""

    images: ImageFolder  # image files
    size: int = CROP  # size of the crop in pixels
    shorter: int = SHORTER_SIDE  # shorter side of the image before the centre crop

    def __len__(self) -> int:
        return len(self.images)

    def augmented(self, batches: Iterable[Tensor], seed: int, epoch: int) -> Pairs:
        """Random crops, flipped at random, and labels."""
        return self._normalised(read_batches(self.images, batches, TrainingCrop(seed, epoch, self.size)))

    def plain(self, batches: Iterable[Tensor]) -> Pairs:
        """Centre crops, and labels."""
        return self._normalised(read_batches(self.images, batches, CenterCrop(self.size, self.shorter)))

    def _normalised(self, pairs: Pairs) -> Pairs:
        for images, labels in pairs:
            yield normalise(images, IMAGENET_MEAN, IMAGENET_STD), labels


@dataclass(frozen=True, eq=False)
class ImageTask(Task):
    """Classify images: train on some, measure on others."""

    train: Images  # training images
    test: Images  # images to measure on
    batch_size: int  # batch size of all processes together; the last batch of an epoch may be smaller
    seed: int  # seed of the order of examples and of their augmentation
    device: torch.device = CPU  # device for the batches
    layout: torch.memory_format = torch.contiguous_format  # memory layout of the batches

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches, including a smaller last one."""
        return -(-len(self.train) // self.batch_size)

    def batches(self, epoch: int, first: int, part: Part) -> Iterator[Batch]:
        """The batches of an epoch in a new order; a process takes every ``part.count``-th example of a batch."""
        order = torch.from_numpy(np.random.default_rng((self.seed, epoch)).permutation(len(self.train)))
        joint = torch.split(order, self.batch_size)[first:]
        own = [indices[part.rank :: part.count] for indices in joint]
        pairs = self.train.augmented(own, self.seed, epoch)
        for whole, (images, labels) in zip(joint, pairs, strict=True):
            yield Batch((self._placed(images), labels.to(self.device)), len(labels), len(whole))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Mean cross entropy."""
        images, labels = batch.content
        return F.cross_entropy(model(images), labels)

    def evaluate(self, model: nn.Module, part: Part) -> Mapping[str, Total]:
        """Mean loss, accuracy, and top-5 accuracy."""
        found = torch.zeros(3, dtype=torch.float64)
        own = torch.arange(len(self.test))[part.rank :: part.count]
        for images, labels in self.test.plain(torch.split(own, self.batch_size)):
            found += _scores(model(self._placed(images)), labels.to(self.device)).cpu()
        names = ("test_loss", "accuracy", "top5")
        return {name: Total(number, len(own)) for name, number in zip(names, found.tolist(), strict=True)}

    def _placed(self, images: Tensor) -> Tensor:
        return images.to(self.device, memory_format=self.layout, non_blocking=True)


def _scores(logits: Tensor, labels: Tensor) -> Tensor:
    """Sums over a batch: loss, correct answers, and labels among the five most likely classes."""
    ranked = logits.topk(min(5, logits.shape[1]), dim=1).indices == labels[:, None]
    loss = F.cross_entropy(logits.float(), labels, reduction="sum")
    return torch.stack([loss.double(), ranked[:, 0].sum().double(), ranked.sum().double()])


def best_layout(model: nn.Module) -> torch.memory_format:
    """Channels last for convolutions, which is faster, unless PyTorch would crash on one of them."""
    convolutions = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    fragile = any(crashes_channels_last(c.in_channels, c.kernel_size, c.stride) for c in convolutions)
    return torch.channels_last if convolutions and not fragile else torch.contiguous_format
