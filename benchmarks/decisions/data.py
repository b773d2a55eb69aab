"""The data of the tasks: small pieces of CIFAR-10, Penn Treebank and a4a, read from the folder EIGENCURVE_DATA."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_svmlight_file
from torch import Tensor
from torch.nn import functional as F

NUM_IMAGES, NUM_VALID = 25_000, 1000
FOLDER = "EIGENCURVE_DATA"


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and targets for training and for validation; a batch is the same rows of both.

    Attributes:
        x, y: Training inputs and targets.
        valid_x, valid_y: Validation inputs and targets.
        flips: Whether training images are mirrored at random.
    """

    x: Tensor
    y: Tensor
    valid_x: Tensor
    valid_y: Tensor
    flips: bool = False

    def batch(self, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """``size`` training examples, drawn independently."""
        rows = torch.randint(len(self.x), (size,), generator=generator)
        x = self.x[rows]
        if self.flips:
            mirrored = torch.rand(size, generator=generator) < 0.5
            x = torch.where(mirrored[:, None, None, None], x.flip(-1), x)
        return x, self.y[rows]


def data_folder() -> Path:
    """The folder with the data sets."""
    folder = os.environ.get(FOLDER)
    if not folder or not Path(folder).is_dir():
        raise SystemExit(f"Training needs data: set {FOLDER} to a folder with cifar10_jpeg.npz, ptb/ and a4a.")
    return Path(folder)


@cache
def images(side: int) -> Examples:
    """Images of CIFAR-10, averaged down to ``side`` × ``side`` pixels, standardised."""
    archive = np.load(data_folder() / "cifar10_jpeg.npz")
    x, valid = (_decoded(archive, split, count, side) for split, count in (("train", NUM_IMAGES), ("test", NUM_VALID)))
    y = torch.from_numpy(archive["train_labels"][:NUM_IMAGES].astype(np.int64))
    valid_y = torch.from_numpy(archive["test_labels"][:NUM_VALID].astype(np.int64))
    mean, deviation = x.mean((0, 2, 3), keepdim=True), x.std((0, 2, 3), keepdim=True)
    return Examples((x - mean) / deviation, y, (valid - mean) / deviation, valid_y, flips=True)


@cache
def flat_images(side: int) -> Examples:
    """:func:`images` as vectors, without random mirroring."""
    data = images(side)
    return Examples(data.x.flatten(1), data.y, data.valid_x.flatten(1), data.valid_y)


@cache
def grey_images(side: int) -> Examples:
    """Grey images as vectors; the target is the image itself."""
    data = images(side)
    x, valid = (part.mean(1).flatten(1) for part in (data.x, data.valid_x))
    return Examples(x, x, valid, valid)


@cache
def masked_images(side: int, hole: int) -> Examples:
    """Grey images with a square hole in the middle; the target is the part that is missing."""
    data, first = images(side), (side - hole) // 2
    inside = torch.zeros(side, side, dtype=torch.bool)
    inside[first : first + hole, first : first + hole] = True
    grey, valid = (part.mean(1) for part in (data.x, data.valid_x))
    return Examples(grey[:, ~inside], grey[:, inside], valid[:, ~inside], valid[:, inside])


@cache
def characters(context: int) -> Examples:
    """Windows of Penn Treebank's validation text; those of its test text are for validation. Targets are one later."""
    text, other = ((data_folder() / "ptb" / f"ptb.{name}.txt").read_text() for name in ("valid", "test"))
    alphabet = {letter: place for place, letter in enumerate(sorted(set(text) | set(other)))}
    train, valid = (torch.tensor([alphabet[letter] for letter in part]) for part in (text, other))
    windows = train.unfold(0, context + 1, 1)
    apart = valid.unfold(0, context + 1, context + 1)
    apart = apart[torch.linspace(0, len(apart) - 1, NUM_VALID // 4).long()]
    return Examples(windows[:, :-1], windows[:, 1:], apart[:, :-1], apart[:, 1:])


@cache
def incomes() -> Examples:
    """LIBSVM's a4a: binary features, and labels 0 and 1."""
    rows, labels = load_svmlight_file(str(data_folder() / "a4a"), n_features=123)
    order = np.random.default_rng(0).permutation(len(labels))
    x = torch.from_numpy(rows.toarray()[order].astype(np.float32))
    y = torch.from_numpy((labels[order] > 0).astype(np.int64))
    return Examples(x[NUM_VALID:], y[NUM_VALID:], x[:NUM_VALID], y[:NUM_VALID])


def _decoded(archive: np.lib.npyio.NpzFile, split: str, count: int, side: int) -> Tensor:
    """The first ``count`` images of a split, as numbers from 0 to 1."""
    content, offsets = archive[f"{split}_jpeg"].tobytes(), archive[f"{split}_offsets"]
    pixels = np.empty((count, 32, 32, 3), dtype=np.uint8)
    for place, (first, end) in enumerate(pairwise(offsets[: count + 1])):
        pixels[place] = Image.open(io.BytesIO(content[first:end]))
    return F.avg_pool2d(torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255, 32 // side)
