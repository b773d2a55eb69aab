"""The examples that a loss is averaged over: batches in any shape, their sizes, and their pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from eigencurve import _check

Count = Callable[[Any], int]


class Batches:
    """Batches to go through again and again, cut into microbatches and moved to the model's device.

    The first pass, here, counts the examples and takes a fingerprint of them. Where all of it is a single
    microbatch, that one is kept, and no later pass goes back to the source.

    Args:
        function: the name that errors begin with.
        source: a list, a DataLoader or any other iterable that can be iterated more than once; a tuple of
            tensors, a mapping or a tensor is one batch.
        pairs: whether every batch must be a pair (x, y).
        device: where tensors go.
        microbatch: the most rows at a time; None leaves the batches whole.
        count: the number of examples in a batch, over which its loss is the mean; by default the first tensor's leading
            dimension.
    """

    def __init__(
        self, function: str, source: Any, pairs: bool, device: torch.device, microbatch: int | None, count: Count | None
    ) -> None:
        self.function, self.pairs, self.device = function, pairs, device
        self.source = _reiterable(function, source)
        self.microbatch = None if microbatch is None else _check.whole(function, "microbatch", microbatch, minimum=1)
        self.count = _leading if count is None else count
        self.num_examples, self.num_pieces, self.num_batches = 0, 0, 0
        self.single: tuple[int, Any] | None = None
        self.fingerprint = self._first_pass()

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Every microbatch with its number of examples; one without any, whose mean does not exist, is left out."""
        if self.single is not None:
            yield self.single
            return
        for batch in self._batches():
            yield from (piece for piece in self._pieces(batch) if piece[0])

    def _first_pass(self) -> str:
        digest = hashlib.sha256()
        for batch in self._batches():
            self.num_batches += 1
            for piece in self._pieces(batch):
                self.num_pieces += 1
                self.num_examples += piece[0]
                _feed(digest, piece[1])
                self.single = piece if self.num_pieces == 1 else None
        if self.num_examples == 0:
            _check.refuse(self.function, "batches", "at least one example", "none", "The loader or list is empty.")
        return digest.hexdigest()

    def _batches(self) -> Iterator[Any]:
        for batch in self.source:
            if self.pairs and not (isinstance(batch, list | tuple) and len(batch) == 2):
                remedy = "One batch goes in as a tuple (x, y); for any other shape use from_objective."
                raise TypeError(_check.sentence(self.function, "batches", "pairs (x, y)", type(batch).__name__, remedy))
            yield _map(lambda tensor: tensor.to(self.device), batch)

    def _pieces(self, batch: Any) -> Iterator[tuple[int, Any]]:
        length = _leading(batch)
        if self.microbatch is None or length is None or length <= self.microbatch:
            yield self._size(batch), batch
            return
        for start in range(0, length, self.microbatch):
            piece = _map(partial(_cut, length=length, start=start, stop=start + self.microbatch), batch)
            yield self._size(piece), piece

    def _size(self, batch: Any) -> int:
        size = self.count(batch)
        if size is None:
            remedy = "Give the number of examples in a batch by 'count'."
            _check.refuse(self.function, "batches", "made of tensors with a leading dimension", batch, remedy)
        return _check.whole(self.function, "count", size, minimum=0)


def generators_of(source: Any) -> list[torch.Generator]:
    """The random generators of its own that a DataLoader draws its order from."""
    samplers = [getattr(source, name, None) for name in ("sampler", "batch_sampler")]
    samplers += [getattr(sampler, "sampler", None) for sampler in samplers]
    found = [getattr(owner, "generator", None) for owner in (source, *samplers)]
    return list({id(g): g for g in found if isinstance(g, torch.Generator)}.values())


def _reiterable(function: str, source: Any) -> Iterable[Any]:
    if isinstance(source, Tensor | Mapping):
        return [source]
    if isinstance(source, tuple) and any(isinstance(part, Tensor) for part in source):
        return [source]
    if isinstance(source, Iterator):
        remedy = "An iterator is used up by its first pass: give a list or a DataLoader."
        raise TypeError(_check.sentence(function, "batches", "iterable more than once", source, remedy))
    if not isinstance(source, Iterable):
        raise TypeError(_check.sentence(function, "batches", "tensors (x, y), a list or a DataLoader", source))
    return source


def _leading(batch: Any) -> Any:
    """The leading dimension of the first tensor in ``batch``; None where there is none."""
    return next((len(tensor) for tensor in _tensors(batch) if tensor.ndim), None)


def _cut(tensor: Tensor, length: int, start: int, stop: int) -> Tensor:
    """Examples ``start`` to ``stop`` of a tensor that has one row an example; others stay whole."""
    return tensor[start:stop] if tensor.ndim and len(tensor) == length else tensor


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
    """``batch`` with every tensor changed; mappings become dicts, named tuples stay."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        return {key: _map(change, value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_map(change, value) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(_map(change, value) for value in batch)
    return batch


def _feed(digest: Any, batch: Any) -> None:
    """Add ``batch`` to a running hash: the tensors' types, shapes and bytes."""
    for tensor in _tensors(batch):
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor_bytes(tensor))


def tensor_bytes(tensor: Tensor) -> Any:
    """The bytes of a tensor of any type, on any device, as a buffer."""
    plain = tensor.detach().cpu().contiguous().reshape(-1)
    return plain.view(torch.uint8).numpy() if plain.numel() else b""
