"""Task: what a model is trained on, with its batches in the parts of several processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn


@dataclass(frozen=True)
class Part:
    """The part of every joint batch that this process takes: part ``rank`` of ``count``."""

    rank: int = 0
    count: int = 1


class Total(NamedTuple):
    """A mean as a sum and a number of terms, so the parts of several processes can be combined."""

    sum: float
    count: float  # type: ignore[assignment]  # shadows tuple.count, which nobody needs here


@dataclass(frozen=True, eq=False)
class Batch:
    """The examples of one step."""

    content: Any  # argument of the task's loss
    size: int  # number of examples (or tokens) in this process's part
    joint_size: int  # number of examples in the parts of all processes together


class Task(Protocol):
    """What a model is trained on. Everything random is a function of the epoch and the task's own seeds.

    A task without state of its own inherits the last two methods.
    """

    @property
    def steps_per_epoch(self) -> int: ...  # noqa: D102
    def batches(self, epoch: int, first: int, part: Part) -> Iterator[Batch]:
        """The batches of an epoch, starting at its step ``first``."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The mean loss over the batch."""

    def evaluate(self, model: nn.Module, part: Part) -> Mapping[str, Total]:
        """The measurements after an epoch, on this process's part of the data."""

    def state_dict(self) -> dict[str, Any]:
        """State that a step passes to the next besides the weights, such as an LSTM's state; empty here."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:  # noqa: ARG002 -- nothing to restore here
        """Continue from a saved state."""
        return
