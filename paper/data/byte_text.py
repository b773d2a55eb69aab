"""The Penn Treebank as bytes: train on its validation text, measure on its test text."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paper import checks
from paper.data.ptb import FILES


@dataclass(frozen=True, eq=False)
class ByteText:
    """A text to train on and a text to measure on."""

    train: Tensor  # training text, one number from 0 to 255 per byte, int64
    test: Tensor  # text to measure on
    name: str  # name for reports

    @cached_property
    def digest(self) -> str:
        """The SHA-256 hash of both texts."""
        found = hashlib.sha256()
        for text in (self.train, self.test):
            found.update(f"{len(text)}\n".encode())
            found.update(text.numpy().data)
        return found.hexdigest()


def load_byte_text(folder: str | os.PathLike[str]) -> ByteText:
    """ptb.valid.txt to train on and ptb.test.txt to measure on; the training text is not needed.

    Raises:
        FileNotFoundError: A text is missing.
        ValueError: A text is empty.
    """
    train, test = (read_bytes(Path(folder) / name) for name in FILES[1:])
    return ByteText(train, test, "Penn Treebank's validation text")


def read_bytes(path: Path) -> Tensor:
    """The bytes of a file, as int64 numbers."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"read_bytes: {path} is missing. It is a text of the Penn Treebank.") from error
    if not content:
        checks.refuse("read_bytes", "path", "a text with bytes in it", str(path), "It is empty.")
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8).astype(np.int64))


def text_windows(text: Tensor, context: int) -> tuple[Tensor, Tensor]:
    """Cut a text into windows of ``context`` bytes, each with the bytes that follow; the rest is dropped.

    >>> text_windows(torch.arange(6), 2)
    (tensor([[0, 1],
            [2, 3]]), tensor([[1, 2],
            [3, 4]]))
    """
    num_windows = (len(text) - 1) // checks.whole("text_windows", "context", context, minimum=1)
    if not num_windows:
        checks.refuse("text_windows", "text", f"longer than one window of {context} bytes", len(text))
    size = num_windows * context
    return text[:size].view(-1, context), text[1 : size + 1].view(-1, context)


def windows_at(text: Tensor, starts: Tensor, context: int) -> tuple[Tensor, Tensor]:
    """Windows of ``context`` bytes from each of the starts, and the bytes that follow each of theirs.

    >>> windows_at(torch.arange(9), torch.tensor([0, 4]), 3)
    (tensor([[0, 1, 2],
            [4, 5, 6]]), tensor([[1, 2, 3],
            [5, 6, 7]]))
    """
    both = text[starts[:, None] + torch.arange(context + 1)]
    return both[:, :-1], both[:, 1:]
