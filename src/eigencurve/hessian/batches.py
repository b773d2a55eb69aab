"""Batches of any structure: iterated repeatedly, counted, and cut into microbatches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
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
        self.num_examples, self.num_pieces, self.num_batches, self.num_rows, self.num_used = 0, 0, 0, 0, 0
        self.single: tuple[int, Any] | None = None
        self._count_all()

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Iterate over (number of examples, microbatch), without microbatches that have no example."""
        if self.single is not None:
            yield self.single
            return
        yield from (piece for piece in self._all_pieces() if piece[0])

    def selected(self, rows: Tensor) -> Iterator[tuple[int, Any]]:
        """Iterate like ``__iter__``, but only over some rows of the data.

        A row is one index of the leading dimension of a batch. With the default ``count`` it is an example.

        Args:
            rows: One boolean for each of the ``num_rows`` rows, in the order of the batches.
        """
        start, chosen = 0, rows.to(self.device)
        for _, batch in self._all_pieces():
            stop = start + self._num_rows(batch)
            if bool(chosen[start:stop].any()):
                part = _map(partial(_pick, chosen=chosen[start:stop]), batch)
                size = self._size(part)
                yield from [(size, part)] if size else []
            start = stop

    def halves(self, batch: Any) -> list[tuple[int, Any]]:
        """The two halves of a microbatch with their numbers of examples; empty if one of them would have none."""
        length = _leading(batch) or 0
        middle = length // 2
        parts = [_map(partial(_cut, length=length, start=i, stop=j), batch) for i, j in ((0, middle), (middle, length))]
        sizes = [self._size(part) for part in parts]
        return list(zip(sizes, parts, strict=True)) if middle and all(sizes) else []

    @property
    def watched(self) -> Any:
        """What to watch for changes of the examples: the list itself, or the microbatch that was read from a loader."""
        return self.source if self._is_list else self.single

    def reread(self) -> None:
        """Read a kept microbatch again.

        Raises:
            ValueError: If the number of examples has changed.
        """
        if self.single is not None:
            self.single = None
            pieces = list(self)
            self.require_same_number(sum(size for size, _ in pieces), len(pieces))
            self.single = pieces[0]

    def require_same_number(self, num_examples: int, num_pieces: int) -> None:
        """Refuse if the source has other numbers of examples and non-empty microbatches than at first."""
        if (num_examples, num_pieces) != (self.num_examples, self.num_used):
            need = f"the same {self.num_examples} examples in {self.num_used} microbatches as at first"
            remedy = "The loader or list has changed: make a new operator."
            _check.refuse(self.function, "batches", need, f"{num_examples} in {num_pieces}", remedy)

    def fingerprint(self) -> str:
        """Hash of all examples as they are now."""
        digest = hashlib.sha256()
        for _, piece in self._all_pieces():
            _feed(digest, piece)
        return digest.hexdigest()

    def _count_all(self) -> None:
        for batch in self._batches():
            self.num_batches += 1
            for piece in self._pieces(batch):
                self.num_pieces += 1
                self.num_examples += piece[0]
                self.num_used += piece[0] > 0
                self.num_rows += _leading(piece[1]) or 0
                self.single = piece if self.num_pieces == 1 and not self._is_list else None
        if self.num_examples == 0:
            _check.refuse(self.function, "batches", "at least one example", "none", "The loader or list is empty.")

    @property
    def _is_list(self) -> bool:
        return isinstance(self.source, list | tuple)

    def _batches(self) -> Iterator[Any]:
        for batch in self.source:
            if self.pairs and not (isinstance(batch, list | tuple) and len(batch) == 2):
                remedy = "Pass a single batch as a tuple (x, y). For batches of another structure, use from_objective."
                _check.wrong_type(self.function, "batches", "pairs (x, y)", type(batch).__name__, remedy)
            yield _map(lambda tensor: tensor.to(self.device), batch)

    def _all_pieces(self) -> Iterator[tuple[int, Any]]:
        return (
            iter([self.single]) if self.single is not None else chain.from_iterable(map(self._pieces, self._batches()))
        )

    def _num_rows(self, batch: Any) -> int:
        length = _leading(batch)
        if length is None:
            _check.refuse(
                self.function, "batches", "made of tensors with a leading dimension", batch, "It cannot be split."
            )
        return int(length)

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
            remedy = "Pass 'count', a function that returns the number of examples in a batch."
            _check.refuse(self.function, "batches", "made of tensors with a leading dimension", batch, remedy)
        return _check.whole(self.function, "count", size, minimum=0)


def generators_of(source: Any) -> list[torch.Generator]:
    """Random generators that a DataLoader and its samplers draw the order from."""
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
        remedy = "An iterator can be read only once: pass a list or a DataLoader."
        _check.wrong_type(function, "batches", "iterable more than once", source, remedy)
    if not isinstance(source, Iterable):
        _check.wrong_type(function, "batches", "tensors (x, y), a list or a DataLoader", source)
    return source


def _leading(batch: Any) -> Any:
    """Leading dimension of the first tensor in ``batch``; None if there is none."""
    return next((len(tensor) for tensor in _tensors(batch) if tensor.ndim), None)


def _cut(tensor: Tensor, length: int, start: int, stop: int) -> Tensor:
    """Rows ``start`` to ``stop`` of a tensor with ``length`` rows; other tensors are returned unchanged."""
    return tensor[start:stop] if tensor.ndim and len(tensor) == length else tensor


def _pick(tensor: Tensor, chosen: Tensor) -> Tensor:
    """The chosen rows of a tensor with ``len(chosen)`` rows; other tensors are returned unchanged."""
    return tensor[chosen] if tensor.ndim and len(tensor) == len(chosen) else tensor


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


def _feed(digest: Any, batch: Any) -> None:
    """Add the types, shapes and bytes of all tensors in ``batch`` to a running hash."""
    for tensor in _tensors(batch):
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor_bytes(tensor))


def hash_of_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Hash of the names, types, shapes and values of tensors."""
    digest = hashlib.sha256(" ".join(tensors).encode())
    for tensor in tensors.values():
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor_bytes(tensor))
    return digest.hexdigest()


def tensor_bytes(tensor: Tensor) -> Any:
    """Bytes of a tensor of any type on any device, as a buffer."""
    plain = tensor.detach().cpu().contiguous().reshape(-1)
    return plain.view(torch.uint8).numpy() if plain.numel() else b""
