"""The vectors of a Lanczos run: the part that this process holds, and inner products over all processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from eigencurve import _check
from eigencurve._files import companion

DOT_CHUNK = 1 << 20
# The square of a length below this has lost digits to underflow.
TINY_SQUARE = 1e-280
# PyTorch draws normal numbers in blocks of this size. Drawn in multiples of it, they are the same as in one call.
NORMAL_BLOCK = 16
NORMAL_CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class Space:
    """Flat vectors of ``dim`` numbers, of which this process holds some.

    Everything that a Lanczos run does with vectors acts on each number alone, apart from inner products. They are
    summed over the processes here, so the run itself does not know how its vectors are distributed.

    Attributes:
        dim: Number of entries of a whole vector.
        pieces: Ranges (start, stop) of the whole vector that this process holds, in ascending order.
        group: Function that returns the process group whose processes hold one part each; None if this process holds
            whole vectors. A group that is still referenced when Python ends can abort the process.
    """

    dim: int
    pieces: tuple[tuple[int, int], ...]
    group: Callable[[], Any] | None = None

    @property
    def size(self) -> int:
        """Number of entries that this process holds."""
        return sum(stop - start for start, stop in self.pieces)

    @property
    def is_shared(self) -> bool:
        """Whether the vectors are distributed over several processes."""
        return self.group is not None

    @property
    def rank(self) -> int:
        """Rank of this process among those that share the vectors."""
        return 0 if self.group is None else dist.get_rank(self.group())

    def dot(self, a: Tensor, b: Tensor) -> float:
        """Inner product of two vectors, in float64."""
        total = torch.zeros((), dtype=torch.float64, device=a.device)
        for x, y in zip(a.split(DOT_CHUNK), b.split(DOT_CHUNK), strict=True):  # type: ignore[no-untyped-call]
            total += torch.dot(x.double(), y.double())
        return float(self.sum(total))

    def norm(self, vector: Tensor) -> float:
        """Length of a vector in float64, also if its square is outside the range of float64."""
        square = self.dot(vector, vector)
        if TINY_SQUARE < square < 1 / TINY_SQUARE:
            return math.sqrt(square)
        largest = self._largest(vector)
        if not 0 < largest < math.inf:
            return largest
        unit = vector.double() / largest
        return largest * math.sqrt(self.dot(unit, unit))

    def sum(self, part: Tensor) -> Tensor:
        """Sum of ``part`` over the processes, in place."""
        if self.group is not None:
            dist.all_reduce(part, op=dist.ReduceOp.SUM, group=self.group())
        return part

    def part(self, whole: Tensor) -> Tensor:
        """The entries of a whole vector that this process holds; a vector of another length is returned unchanged."""
        if self.group is None or whole.shape != (self.dim,):
            return whole
        return torch.cat([whole[start:stop] for start, stop in self.pieces]) if self.pieces else whole[:0]

    def normal(self, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
        """The part of ``torch.randn(dim)`` that this process holds, without ever creating the whole vector."""
        if self.group is None:
            return torch.randn(self.dim, generator=generator, dtype=dtype)
        result, filled = torch.empty(self.size, dtype=dtype), 0
        chunks = _normal_chunks(self.dim, generator, dtype)
        first, chunk = next(chunks)
        for start, stop in self.pieces:
            while start < stop:
                while start >= first + len(chunk):
                    first, chunk = next(chunks)
                part = chunk[start - first : stop - first]
                result[filled : filled + len(part)] = part
                filled, start = filled + len(part), start + len(part)
        for _ in chunks:  # draw as many numbers as every other process
            pass
        return result

    def gather(self, value: object) -> list[Any]:
        """The values of all processes, in the order of their ranks."""
        if self.group is None:
            return [value]
        group = self.group()
        values: list[object] = [None] * dist.get_world_size(group)
        dist.all_gather_object(values, value, group=group)
        return values

    def wait(self) -> None:
        """Return after all processes have called this."""
        self.gather(None)

    def own_path(self, path: Path) -> Path:
        """Path of this process's own file: ``path`` itself, or for instance ``path.part-1-of-4``."""
        if self.group is None:
            return path
        return companion(path, f".part-{self.rank}-of-{dist.get_world_size(self.group())}")

    def require(self, function: str, argument: str, vector: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return ``vector`` if it is a vector of this space.

        Raises:
            TypeError: If it is not a tensor.
            ValueError: If it has another length, type or device.
        """
        if not isinstance(vector, Tensor):
            _check.wrong_type(function, argument, "a tensor", vector)
        if vector.shape != (self.size,) or vector.dtype != dtype or vector.device != device:
            need = f"a tensor of {self.size} numbers of type {dtype} on {device}"
            _check.refuse(function, argument, need, f"shape {tuple(vector.shape)}, {vector.dtype}, {vector.device}")
        return vector

    def _largest(self, vector: Tensor) -> float:
        """Largest |entry| over all processes; NaN if there is one."""
        mine = float(vector.abs().max()) if len(vector) else 0.0
        return float(max(self.gather(mine), key=lambda value: (math.isnan(value), value)))


def whole_space(dim: int) -> Space:
    """The space of a process that holds whole vectors.

    >>> whole_space(3).dot(torch.tensor([1.0, 2.0, 3.0]), torch.ones(3))
    6.0
    """
    return Space(dim, ((0, dim),))


def even_space(dim: int, group: Any) -> Space:
    """Vectors in equal parts, one for each process of ``group``; the last parts may be shorter."""
    return Space(dim, (even_range(dim, dist.get_rank(group), dist.get_world_size(group)),), lambda: group)


def even_range(dim: int, rank: int, num_parts: int) -> tuple[int, int]:
    """Start and stop of one of ``num_parts`` equal parts of a vector; the last ones may be shorter.

    >>> even_range(10, 3, 4)
    (9, 10)
    """
    width = -(-dim // num_parts)
    return min(rank * width, dim), min((rank + 1) * width, dim)


def space_of(operator: Any) -> Space:
    """The vectors that ``operator`` multiplies: its ``space``, or whole vectors if it has none."""
    space: Space = getattr(operator, "space", None) or whole_space(operator.dim)
    return space


def own_part(tensor: Tensor) -> Tensor:
    """The part of a distributed tensor (DTensor) that this process holds; any other tensor is returned unchanged."""
    local: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return local


def _normal_chunks(dim: int, generator: torch.Generator, dtype: torch.dtype) -> Iterator[tuple[int, Tensor]]:
    """The numbers of ``torch.randn(dim)`` in chunks, each with the place of its first number."""
    first = 0
    while first < dim:
        rest = dim - first
        length = NORMAL_CHUNK if rest >= NORMAL_CHUNK + NORMAL_BLOCK else rest
        yield first, torch.randn(length, generator=generator, dtype=dtype)
        first += length
