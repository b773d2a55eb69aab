"""CIFAR-10 and CIFAR-100 in the layout that their authors publish: cifar-10-batches-py and cifar-100-python."""

from __future__ import annotations

import hashlib
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from paper.data.download import extract_files, fetch
from paper.data.images import ImageSet
from paper.data.plain_pickle import ForbiddenNameError, load_plain

SHAPE = (3, 32, 32)


@dataclass(frozen=True)
class Cifar:
    """One of the two data sets as published."""

    name: str  # name for reports
    folder: str  # folder in the archive
    train: tuple[str, ...]  # files of the training images
    test: str  # file of the test images
    meta: str  # file that describes the others
    labels: str  # key of the labels in a file
    num_classes: int  # number of classes
    url: str  # address of the archive
    md5: str  # MD5 sum of the archive
    test_md5: str  # MD5 sum of the file of test images


CIFAR10 = Cifar(
    "CIFAR-10", "cifar-10-batches-py", tuple(f"data_batch_{i}" for i in range(1, 6)), "test_batch", "batches.meta",
    labels="labels", num_classes=10, url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    md5="c58f30108f718f92721af3b95e74349a", test_md5="40351d587109b95175f43aff81a1287e",
)  # fmt: skip
CIFAR100 = Cifar(
    "CIFAR-100", "cifar-100-python", ("train",), "test", "meta",
    labels="fine_labels", num_classes=100, url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    md5="eb9058c3a382ffc7106e4002c42a8d85", test_md5="f0ef6b0ae62326f3e7ffdfab6717acfc",
)  # fmt: skip


def load_cifar(folder: str | os.PathLike[str], cifar: Cifar = CIFAR10) -> tuple[ImageSet, ImageSet]:
    """The training and the test images of CIFAR-10, or of CIFAR-100 with its 100 fine labels.

    Args:
        folder: Folder of the unpacked archive, or its parent.
        cifar: ``CIFAR10`` or ``CIFAR100``.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is invalid. Nothing in it was executed.
    """
    source = _inner(cifar, Path(folder))
    expected = _fields(source / cifar.meta).get("num_cases_per_batch")
    train = [_batch(cifar, source / name, expected) for name in cifar.train]
    test = [_batch(cifar, source / cifar.test, expected)]
    return _joined(cifar, train), _joined(cifar, test)


def download(cifar: Cifar, folder: str | os.PathLike[str]) -> Path:
    """Download the archive to ``folder`` if it is missing, check it, and extract the files that are read."""
    archive = fetch(cifar.url, Path(folder) / cifar.url.rpartition("/")[2], cifar.md5, algorithm="md5")
    names = [f"{cifar.folder}/{name}" for name in (*cifar.train, cifar.test, cifar.meta)]
    extract_files(archive, folder, names)
    return Path(folder) / cifar.folder


def is_published(cifar: Cifar, folder: str | os.PathLike[str]) -> bool:
    """Whether the test images in ``folder`` are the published file, byte for byte."""
    content = (_inner(cifar, Path(folder)) / cifar.test).read_bytes()
    return hashlib.md5(content, usedforsecurity=False).hexdigest() == cifar.test_md5


def _inner(cifar: Cifar, folder: Path) -> Path:
    """The folder of the files, given that folder or its parent."""
    return folder / cifar.folder if (folder / cifar.folder).is_dir() else folder


def _joined(cifar: Cifar, batches: list[tuple[np.ndarray[Any, Any], list[int]]]) -> ImageSet:
    pixels = np.concatenate([data.reshape(-1, *SHAPE) for data, _ in batches])
    labels = [label for _, numbers in batches for label in numbers]
    return ImageSet(torch.from_numpy(pixels), torch.tensor(labels, dtype=torch.int64), cifar.num_classes, cifar.name)


def _batch(cifar: Cifar, path: Path, expected: Any) -> tuple[np.ndarray[Any, Any], list[int]]:
    """The pixels and the labels of one file, checked."""
    fields = _fields(path)
    data, labels = fields.get("data"), fields.get(cifar.labels)
    size = int(np.prod(SHAPE))
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != size:
        found = f"{data.dtype} {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        _refuse(path, f"a batch whose 'data' is uint8 of shape (n, {size})", found)
    if expected is not None and len(data) != expected:
        _refuse(path, f"a batch of {expected} images, as {cifar.meta} says", f"{len(data)} images")
    if not isinstance(labels, list) or len(labels) != len(data):
        found = f"{len(labels)} labels" if isinstance(labels, list) else type(labels).__name__
        _refuse(path, f"a batch with a list of {len(data)} {cifar.labels!r}", found)
    for place, label in enumerate(labels):
        if type(label) is not int or not 0 <= label < cifar.num_classes:
            constraint = f"a batch with labels in 0 … {cifar.num_classes - 1}"
            _refuse(path, constraint, f"{label!r:.100} for image {place}")
    return data, labels


def _fields(path: Path) -> dict[str, Any]:
    try:
        fields = load_plain(path.read_bytes())
    except FileNotFoundError as error:
        raise FileNotFoundError(f"load_cifar: {path} is missing. Pass the folder of the unpacked archive.") from error
    except ForbiddenNameError as error:
        _refuse(path, "a pickle of plain values and arrays", f"one that names {error}; nothing was executed")
    except pickle.UnpicklingError as error:
        _refuse(path, "a whole pickle", str(error), "Unpack the archive again.")
    if not isinstance(fields, dict):
        _refuse(path, "a pickled dictionary", type(fields).__name__)
    return {key.decode("latin-1") if isinstance(key, bytes) else str(key): value for key, value in fields.items()}


def _refuse(path: Path, constraint: str, found: str, remedy: str = "") -> NoReturn:
    raise ValueError(f"load_cifar: {path} must be {constraint}, got {found}.{' ' if remedy else ''}{remedy}")
