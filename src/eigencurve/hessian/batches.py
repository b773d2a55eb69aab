"""Batches of any structure: iterated repeatedly, counted, and cut into microbatches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from eigencurve import _check

Count = Callable[[Any], int]


class Batches:
    """Batches that can be iterated repeatedly, cut into microbatches and moved to the model's device.

    The constructor makes one pass to count the examples. If a loader has a single microbatch, it is kept until
    :meth:`reread`; a list is read every time.

    Args:
        function: Name of the caller, for error messages.
        source: A list, a DataLoader or any other iterable that can be iterated more than once. A tuple of tensors, a
            mapping or a tensor is a single batch.
        pairs: Whether every batch must be a pair (x, y).
        device: Device that tensors are moved to.
        microbatch: Maximum number of rows at a time; None keeps the batches whole.
        count: Function that returns the number of examples over which the loss of a batch is the mean; by default the
            leading dimension of the first tensor.
    """

    def __init__(
        self, function: str, source: Any, pairs: bool, device: torch.device, microbatch: int | None, count: Count | None
    ) -> None:
        self.function, self.pairs, self.device = function, pairs, device
        self.source = _reiterable(function, source)
        self.microbatch = None if microbatch is None else _check.whole(function, "microbatch", microbatch, minimum=1)
        self.count = _leading if count is None else count
        self.num_examples, self.num_pieces, self.num_rows, self.is_split = 0, 0, 0, False
        self._num_used = 0
        self._single: tuple[int, Any] | None = None
        self._count_all()

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Iterate over (number of examples, microbatch), without microbatches that have no example.

        Raises:
            ValueError: At the end, if the source has other numbers of examples and microbatches than at first.
        """
        num_examples, num_used = 0, 0
        for size, piece in self._all_pieces():
            if size:
                num_examples, num_used = num_examples + size, num_used + 1
                yield size, piece
        if (num_examples, num_used) != (self.num_examples, self._num_used):
            need = f"the same {self.num_examples} examples in {self._num_used} microbatches as at first"
            remedy = "The loader or list has changed: make a new operator."
            _check.refuse(self.function, "batches", need, f"{num_examples} in {num_used}", remedy)

    def selected(self, rows: Tensor) -> Iterator[tuple[int, Any]]:
        """Iterate like ``__iter__``, but only over some rows of the data.

        A row is one index of the leading dimension of a batch. With the default ``count`` it is an example.

        Args:
            rows: One boolean for each of the ``num_rows`` rows, in the order of the batches.
        """
        start, chosen = 0, rows.to(self.device)
        for _, batch in self._all_pieces():
            length = _leading(batch)
            if length is None:
                remedy = "It cannot be split."
                _check.refuse(self.function, "batches", "made of tensors with a leading dimension", batch, remedy)
            here = chosen[start : start + length]
            if bool(here.any()):
                part = _rows(batch, length, here)
                size = self._size(part)
                yield from [(size, part)] if size else []
            start += length

    def halves(self, batch: Any) -> list[tuple[int, Any]]:
        """The two halves of a microbatch with their numbers of examples; empty if one of them would have none."""
        length = _leading(batch) or 0
        middle = length // 2
        parts = [_rows(batch, length, slice(middle)), _rows(batch, length, slice(middle, None))]
        sizes = [self._size(part) for part in parts]
        return list(zip(sizes, parts, strict=True)) if middle and all(sizes) else []

    @property
    def watched(self) -> Any:
        """What to watch for changes of the examples: the list itself, or the microbatch that was read from a loader."""
        return self.source if isinstance(self.source, list | tuple) else self._single

    def reread(self) -> None:
        """Read a kept microbatch again.

        Raises:
            ValueError: If the number of examples has changed.
        """
        if self._single is not None:
            self._single = None
            pieces = list(self)
            self._single = pieces[0]

    def fingerprint(self) -> str:
        """Hash of the current examples."""
        digest = hashlib.sha256()
        for _, piece in self._all_pieces():
            _feed(digest, _tensors(piece))
        return digest.hexdigest()

    def _count_all(self) -> None:
        piece = None
        for batch in self._batches():
            for number, piece in enumerate(self._pieces(batch)):
                self.num_pieces += 1
                self.num_examples += piece[0]
                self.num_rows += _leading(piece[1]) or 0
                self._num_used += piece[0] > 0
                self.is_split |= number > 0
        if self.num_examples == 0:
            _check.refuse(self.function, "batches", "at least one example", "none", "The loader or list is empty.")
        self._single = piece if self.num_pieces == 1 and not isinstance(self.source, list | tuple) else None

    def _batches(self) -> Iterator[Any]:
        for batch in self.source:
            if self.pairs and not (isinstance(batch, list | tuple) and len(batch) == 2):
                remedy = "Pass a single batch as a tuple (x, y). For batches of another structure, use from_objective."
                _check.wrong_type(self.function, "batches", "pairs (x, y)", type(batch).__name__, remedy)
            yield _map(lambda tensor: tensor.to(self.device), batch)

    def _all_pieces(self) -> Iterator[tuple[int, Any]]:
        if self._single is not None:
            yield self._single
            return
        for batch in self._batches():
            yield from self._pieces(batch)

    def _pieces(self, batch: Any) -> Iterator[tuple[int, Any]]:
        length = _leading(batch)
        if self.microbatch is None or length is None or length <= self.microbatch:
            yield self._size(batch), batch
            return
        for start in range(0, length, self.microbatch):
            piece = _rows(batch, length, slice(start, start + self.microbatch))
            yield self._size(piece), piece

    def _size(self, batch: Any) -> int:
        size = self.count(batch)
        if size is None:
            remedy = ("Pass ", _check.Arg("count"), ", a function that returns the number of examples in a batch.")
            _check.refuse(self.function, "batches", "made of tensors with a leading dimension", batch, remedy)
        return _check.whole(self.function, "count", size, minimum=0)


def generators_of(source: Any) -> list[torch.Generator]:
    """Random generators that a DataLoader and its samplers draw the order from."""
    samplers = [getattr(source, name, None) for name in ("sampler", "batch_sampler")]
    samplers += [getattr(sampler, "sampler", None) for sampler in samplers]
    generators = [getattr(owner, "generator", None) for owner in (source, *samplers)]
    return list({id(g): g for g in generators if isinstance(g, torch.Generator)}.values())


def _reiterable(function: str, source: Any) -> Iterable[Any]:
    if isinstance(source, Tensor | Mapping):
        return [source]
    if isinstance(source, tuple) and any(isinstance(part, Tensor) for part in source):
        return [source]
    if isinstance(source, Iterator):
        remedy = "An iterator can be read only once: pass a list or a DataLoader."
        _check.wrong_type(function, "batches", "iterable more than once", source, remedy)
    if not isinstance(source, Iterable):
        _check.wrong_type(function, "batches", "tensors (x, y), a list or a DataLoader", source)
    return source


def _leading(batch: Any) -> Any:
    """Leading dimension of the first tensor in ``batch``; None if there is none."""
    return next((len(tensor) for tensor in _tensors(batch) if tensor.ndim), None)


def _rows(batch: Any, length: int, rows: slice | Tensor) -> Any:
    """Some rows of all tensors that have ``length`` rows; other tensors are unchanged."""
    return _map(lambda tensor: tensor[rows] if tensor.ndim and len(tensor) == length else tensor, batch)


def _tensors(batch: Any) -> Iterator[Tensor]:
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        for value in batch.values():
            yield from _tensors(value)
    elif isinstance(batch, list | tuple):
        for value in batch:
            yield from _tensors(value)


def _map(change: Callable[[Tensor], Tensor], batch: Any) -> Any:
    """``batch`` with ``change`` applied to every tensor; mappings become dicts."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        return {key: _map(change, value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_map(change, value) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(_map(change, value) for value in batch)
    return batch


def hash_of_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Hash of the names, types, shapes and values of tensors."""
    digest = hashlib.sha256(" ".join(tensors).encode())
    _feed(digest, tensors.values())
    return digest.hexdigest()


def _feed(digest: Any, tensors: Iterable[Tensor]) -> None:
    """Add the types, shapes and bytes of tensors to a running hash."""
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor_bytes(tensor))


def tensor_bytes(tensor: Tensor) -> Any:
    """Bytes of a tensor of any type on any device, as a buffer."""
    plain = tensor.detach().cpu().contiguous().reshape(-1)
    return plain.view(torch.uint8).numpy() if plain.numel() else b""
