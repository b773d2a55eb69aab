"""ImageNet in its usual layout: train/ and val/, each with one folder of JPEG files per class.

Threads decode the images ahead of the training. The crop and flip of a training image depend only on the seed, the
epoch and its index, as in :mod:`paper.data.images`.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paper import checks

try:
    from PIL import Image
except ImportError as error:
    raise ImportError("Reading JPEG files needs Pillow: pip install --requirement paper/requirements.txt") from error

# The pixels that an image decodes to, and the ratio of its sides, because the shorter side is scaled to 256.
MOST_PIXELS = 64_000_000
MOST_ASPECT = 100
SUFFIXES = (".jpeg", ".jpg", ".png")
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
CROP = 224
SHORTER_SIDE = 256
AREA = (0.08, 1.0)
ASPECT = (3 / 4, 4 / 3)
NUM_TRIES = 10

Box = tuple[int, int, int, int]
Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class ImageFolder:
    """Image files and their labels; nothing is decoded."""

    root: Path  # folder that the file names are relative to
    files: tuple[str, ...]  # file names, relative to `root`
    labels: Tensor  # label of each file, int64
    classes: tuple[str, ...]  # name of each class, in the order of the labels
    name: str  # name for reports

    def __len__(self) -> int:
        return len(self.files)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 hash of the files' names, sizes and labels; reading their contents would take too long."""
        found = hashlib.sha256("\n".join(self.classes).encode())
        for file, label in zip(self.files, self.labels.tolist(), strict=True):
            found.update(f"\n{file} {(self.root / file).stat().st_size} {label}".encode())
        return found.hexdigest()

    def subset(self, indices: Tensor | Sequence[int]) -> ImageFolder:
        """The files at ``indices``, in that order."""
        chosen = torch.as_tensor(indices, dtype=torch.int64)
        files = tuple(self.files[i] for i in chosen.tolist())
        return ImageFolder(self.root, files, self.labels[chosen], self.classes, self.name)


class Transform(Protocol):
    """Maps an image of any size to one of fixed size; ``index`` is the index of the image in its set."""

    def __call__(self, image: Image.Image, index: int) -> Image.Image: ...  # noqa: D102


@dataclass(frozen=True)
class TrainingCrop:
    """A random crop, scaled to size × size and flipped at random.

    The crop has 8 % to 100 % of the area, uniformly, and an aspect ratio of 3/4 to 4/3, uniformly in its logarithm. If
    ten tries find none inside the image, it is the largest centred crop with an allowed aspect ratio.

    Reference: Szegedy et al., CVPR 2015, as commonly implemented.
    """

    seed: int
    epoch: int
    size: int = CROP

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("epoch", 0), ("size", 1)):
            checks.whole("TrainingCrop", name, getattr(self, name), minimum=least)

    def __call__(self, image: Image.Image, index: int) -> Image.Image:
        """The crop of ``image`` for this seed, epoch and index."""
        rng = np.random.default_rng((self.seed, self.epoch, index))
        mirrored = rng.random() < 0.5
        part = image.crop(random_box(image.width, image.height, rng))
        scaled = part.resize((self.size, self.size), Image.Resampling.BILINEAR)
        return scaled.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else scaled


@dataclass(frozen=True)
class CenterCrop:
    """The central size × size pixels of the image, after scaling its shorter side to ``shorter``."""

    size: int = CROP
    shorter: int = SHORTER_SIDE

    def __post_init__(self) -> None:
        if checks.whole("CenterCrop", "size", self.size, minimum=1) > self.shorter:
            checks.refuse("CenterCrop", "size", f"<= shorter = {self.shorter}", self.size)

    def __call__(self, image: Image.Image, index: int) -> Image.Image:  # noqa: ARG002 -- nothing is random
        """The centre crop of ``image``."""
        least = min(image.width, image.height)
        width, height = (int(self.shorter * side / least) for side in (image.width, image.height))
        left, top = (round((side - self.size) / 2) for side in (width, height))
        scaled = image.resize((width, height), Image.Resampling.BILINEAR)
        return scaled.crop((left, top, left + self.size, top + self.size))


def random_box(width: int, height: int, rng: np.random.Generator) -> Box:
    """Left, top, right and bottom of a random crop of a width × height image; see :class:`TrainingCrop`.

    >>> random_box(500, 375, np.random.default_rng(0))
    (65, 166, 194, 337)
    """
    for _ in range(NUM_TRIES):
        area = width * height * rng.uniform(*AREA)
        aspect = math.exp(rng.uniform(math.log(ASPECT[0]), math.log(ASPECT[1])))
        across, down = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < across <= width and 0 < down <= height:
            left, top = (int(rng.integers(0, room + 1)) for room in (width - across, height - down))
            return left, top, left + across, top + down
    return _middle_box(width, height)


def _middle_box(width: int, height: int) -> Box:
    across, down = min(width, round(height * ASPECT[1])), min(height, round(width / ASPECT[0]))
    left, top = (width - across) // 2, (height - down) // 2
    return left, top, left + across, top + down


def load_imagenet(folder: str | os.PathLike[str]) -> tuple[ImageFolder, ImageFolder]:
    """The training and validation files in ``folder``/train and ``folder``/val.

    Raises:
        FileNotFoundError: One of the two folders is missing.
        ValueError: There are no class folders, a class has no images, a file name is not that of an image, or the two
            folders have different classes.
    """
    train, val = (list_images(Path(folder) / part) for part in ("train", "val"))
    odd = sorted(set(train.classes) ^ set(val.classes))
    if odd:
        checks.refuse("load_imagenet", "folder", "one whose train/ and val/ have the same classes", odd)
    return train, val


def list_images(folder: str | os.PathLike[str], name: str = "ImageNet") -> ImageFolder:
    """The images in a folder of class folders, with classes in alphabetical order; hidden files are ignored."""
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"list_images: {root} is missing. Pass the folder that holds train/ and val/.")
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir() and not entry.name.startswith("."))
    if not classes:
        checks.refuse("list_images", "folder", "a folder of class folders", str(root), "It has no folders in it.")
    files, labels = [], []
    for label, kind in enumerate(classes):
        found = _files(root / kind)
        files += [f"{kind}/{file}" for file in found]
        labels += [label] * len(found)
    return ImageFolder(root, tuple(files), torch.tensor(labels, dtype=torch.int64), tuple(classes), name)


def _files(folder: Path) -> list[str]:
    names = sorted(entry.name for entry in os.scandir(folder) if not entry.name.startswith("."))
    for name in names:
        if not name.lower().endswith(SUFFIXES):
            checks.refuse("list_images", "folder", "one of images only", str(folder / name), "Move it elsewhere.")
    if not names:
        checks.refuse("list_images", "folder", "one with images for every class", str(folder), "It has none.")
    return names


def read_image(path: Path, transform: Transform, index: int) -> Pixels:
    """One image as bytes, shape (3, height, width).

    Raises:
        ValueError: The file is not an image, or is damaged or huge. The message names it.
    """
    try:
        with Image.open(path) as image:
            _require_moderate(path, image.width, image.height)
            pixels = np.asarray(transform(image.convert("RGB"), index))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"read_image: {path} must be an image, got one that cannot be decoded ({error}).") from error
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _require_moderate(path: Path, width: int, height: int) -> None:
    if width * height > MOST_PIXELS or max(width, height) > MOST_ASPECT * min(width, height):
        need = f"at most {MOST_PIXELS // 10**6} megapixels whose sides differ by at most a factor of {MOST_ASPECT}"
        raise ValueError(f"read_image: {path} must be an image of {need}, got {width} × {height}.")


def read_batches(
    images: ImageFolder, batches: Iterable[Tensor], transform: Transform, num_threads: int | None = None,
    num_ahead: int = 4,
) -> Iterator[tuple[Tensor, Tensor]]:  # fmt: skip
    """Images (uint8) and labels of each batch of indices, decoded by threads ahead of time.

    Pillow releases Python's global lock while it decodes and scales, so threads are enough.

    Args:
        images: Image files.
        batches: Batches of indices, consumed as reading proceeds.
        transform: Transform to apply to each image.
        num_threads: Number of decoding threads; None for one per core.
        num_ahead: Number of batches to decode in advance. More use more memory but avoid waiting.
    """
    count = (os.cpu_count() or 1) if num_threads is None else num_threads
    checks.whole("read_batches", "num_threads", count, minimum=1)
    checks.whole("read_batches", "num_ahead", num_ahead, minimum=1)
    return _read_ahead(images, iter(batches), transform, count, num_ahead)


def _read_ahead(
    images: ImageFolder, batches: Iterator[Tensor], transform: Transform, num_threads: int, num_ahead: int
) -> Iterator[tuple[Tensor, Tensor]]:
    waiting: deque[tuple[Tensor, list[Future[Pixels]]]] = deque()
    pool = ThreadPoolExecutor(num_threads, thread_name_prefix="read_batches")
    try:
        while True:
            while len(waiting) <= num_ahead and (indices := next(batches, None)) is not None:
                waiting.append((indices, [_start(pool, images, transform, i) for i in indices.tolist()]))
            if not waiting:
                return
            indices, pending = waiting.popleft()
            pixels = np.stack([future.result() for future in pending])
            yield torch.from_numpy(pixels), images.labels[indices]
    finally:  # also if the caller stops early or an image is damaged
        pool.shutdown(wait=True, cancel_futures=True)


def _start(pool: ThreadPoolExecutor, images: ImageFolder, transform: Transform, index: int) -> Future[Any]:
    return pool.submit(read_image, images.root / images.files[index], transform, index)
