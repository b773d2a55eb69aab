"""Penn Treebank as words and as bytes: ptb.train.txt, ptb.valid.txt and ptb.test.txt."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paper import checks

END = "<eos>"
UNKNOWN = "<unk>"
FILES = ("ptb.train.txt", "ptb.valid.txt", "ptb.test.txt")


@dataclass(frozen=True)
class Vocabulary:
    """The words of a training text, the most frequent first; all other words become ``<unk>``.

    >>> vocabulary = Vocabulary.of(["a", "b", "b", "<eos>"])
    >>> vocabulary.words, vocabulary.encode(["b", "z", "a"]).tolist()
    (('b', '<eos>', 'a', '<unk>'), [0, 3, 2])
    """

    words: tuple[str, ...]

    @classmethod
    def of(cls, words: Sequence[str], least: int = 1) -> Vocabulary:
        """The words that occur at least ``least`` times, by frequency and then alphabetically, and ``<unk>``."""
        counts = Counter(words)
        kept = {word for word, count in counts.items() if count >= least} | {UNKNOWN}
        return cls(tuple(sorted(kept, key=lambda word: (-counts[word], word))))

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def places(self) -> dict[str, int]:
        """Number of each word."""
        return {word: place for place, word in enumerate(self.words)}

    def encode(self, words: Sequence[str]) -> Tensor:
        """The numbers of the words, int64."""
        unknown = self.places[UNKNOWN]
        return torch.tensor([self.places.get(word, unknown) for word in words], dtype=torch.int64)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Training, validation and test texts, as word numbers."""

    train: Tensor  # training text, int64, one number per word
    valid: Tensor  # validation text
    test: Tensor  # test text
    vocabulary: Vocabulary  # vocabulary of the training text
    name: str  # name for reports

    @cached_property
    def digest(self) -> str:
        """The SHA-256 hash of the vocabulary and the three texts."""
        words = "\n".join(self.vocabulary.words)
        return _digest(f"{words}\n", "\n", self.train, self.valid, self.test)


def _digest(head: str, between: str, *texts: Tensor) -> str:
    """A hash of ``head`` and of the texts, each with its length."""
    parts = (f"{len(text)}\n".encode() + text.numpy().tobytes() for text in texts)
    return hashlib.sha256(head.encode() + between.encode().join(parts)).hexdigest()


def load_ptb(folder: str | os.PathLike[str]) -> Corpus:
    """The three texts in ``folder``, with the vocabulary of the training text.

    Raises:
        FileNotFoundError: A text is missing.
        ValueError: A text is empty or not UTF-8.
    """
    texts = [read_words(Path(folder) / name) for name in FILES]
    vocabulary = Vocabulary.of(texts[0])
    train, valid, test = map(vocabulary.encode, texts)
    return Corpus(train, valid, test, vocabulary, "Penn Treebank")


def load_small_ptb(folder: str | os.PathLike[str], least: int, held_out: float = 0.1) -> Corpus:
    """A small corpus for when the training text is missing: train on the *validation* text, report on the test text.

    The last lines of the validation text, a share ``held_out`` of its words, are held out for validation. Words that
    occur fewer than ``least`` times are not in the vocabulary.
    """
    words, test = (read_words(Path(folder) / name) for name in FILES[1:])
    cut = words.index(END, round((1 - held_out) * len(words))) + 1
    vocabulary = Vocabulary.of(words[:cut], least)
    train, valid, reported = map(vocabulary.encode, (words[:cut], words[cut:], test))
    return Corpus(train, valid, reported, vocabulary, "Penn Treebank's validation text")


def read_words(path: str | os.PathLike[str]) -> list[str]:
    """The words of a text, with ``<eos>`` at the end of each line.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is empty or not UTF-8.
    """
    try:
        text = _content(Path(path)).decode()
    except UnicodeDecodeError as error:
        checks.refuse("read_words", "path", "a text in UTF-8", str(path), f"Byte {error.start} is not.")
    return [word for line in text.splitlines() for word in (*line.split(), END)]


def rows_of(text: Tensor, batch_size: int) -> Tensor:
    """Cut the text into ``batch_size`` rows of equal length, dropping the words that are left over.

    >>> rows_of(torch.arange(7), 2)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    checks.whole("rows_of", "batch_size", batch_size, minimum=1)
    length = len(text) // batch_size
    if length < 2:
        remedy = "A row needs at least two words: use a smaller 'batch_size'."
        checks.refuse("rows_of", "text", f">= {2 * batch_size} words", len(text), remedy)
    return text[: batch_size * length].view(batch_size, length)


def num_windows(num_words: int, batch_size: int, unroll: int) -> int:
    """Number of whole windows of ``unroll`` words in a text of ``batch_size`` rows, which is the steps per epoch."""
    return (num_words // batch_size - 1) // unroll


def windows(rows: Tensor, unroll: int, whole: bool = True) -> Iterator[tuple[Tensor, Tensor]]:
    """Windows of ``unroll`` columns in the order of the text, each with the words that follow.

    A model that carries its state from one window to the next reads each row as one text (Zaremba, Sutskever and
    Vinyals, arXiv:1409.2329).

    Args:
        rows: Rows of text, from :func:`rows_of`.
        unroll: Number of columns per window.
        whole: Whether to drop a last window with fewer columns, as in training; measurements use every word.

    >>> [(x.tolist(), y.tolist()) for x, y in windows(torch.arange(4).view(1, 4), unroll=2, whole=False)]
    [([[0, 1]], [[1, 2]]), ([[2]], [[3]])]
    """
    checks.whole("windows", "unroll", unroll, minimum=1)
    last = rows.shape[1] - 1
    for begin in range(0, last - unroll + 1 if whole else last, unroll):
        end = min(begin + unroll, last)
        yield rows[:, begin:end], rows[:, begin + 1 : end + 1]


@dataclass(frozen=True, eq=False)
class ByteText:
    """A text to train on and a text to measure on."""

    train: Tensor  # training text, one number from 0 to 255 per byte, int64
    test: Tensor  # text to measure on
    name: str  # name for reports

    @cached_property
    def digest(self) -> str:
        """The SHA-256 hash of both texts."""
        return _digest("", "", self.train, self.test)


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
    return torch.from_numpy(np.frombuffer(_content(path), dtype=np.uint8).astype(np.int64))


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} is missing. It is a text of the Penn Treebank.") from error
    if not content.strip():
        checks.refuse("paper", "data", "a text of the Penn Treebank", str(path), "It is empty.")
    return content


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
