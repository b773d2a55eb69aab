"""Predicting the next byte as a training task: random windows, or every window of the text once per epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paper import checks
from paper.data.ptb import ByteText, text_windows, windows_at
from paper.models.transformer import next_byte_loss
from paper.training.task import Batch, Part, Task, Total

ROWS_AT_ONCE = 32


class ByteTask:
    """Predict the next byte; measure on windows of another text.

    The windows of the measured text are split: ``num_valid`` of them, evenly spaced, are measured after each epoch;
    the others are for :meth:`test_loss`, at the end.

    Args:
        text: Texts to train and measure on.
        batch_size: Number of windows per step.
        context: Number of bytes per window.
        steps_per_epoch: Number of steps between two measurements; nothing else distinguishes an epoch.
        num_valid: Number of windows to measure on after each epoch.
        seed: Seed of the windows.
        device: Device for the batches.
    """

    def __init__(
        self, text: ByteText, batch_size: int, context: int, steps_per_epoch: int, num_valid: int, seed: int,
        device: torch.device | None = None,
    ) -> None:  # fmt: skip
        self.text, self.batch_size, self.context, self.seed = text, batch_size, context, seed
        self.steps_per_epoch = steps_per_epoch
        self.device = device or torch.device("cpu")
        # Reading a loss would make a GPU wait, so losses stay on its device. They share a buffer, because a tensor per
        # step would split the memory that steps free: the process would grow by the size of the logits at every step.
        self._losses = torch.zeros(0, device=self.device)
        self.num_losses = 0  # number of steps so far
        inputs, following = text_windows(text.test, context)
        places = np.linspace(0, len(inputs) - 1, min(num_valid, len(inputs))).round().astype(int)
        others = np.setdiff1d(np.arange(len(inputs)), places)
        self.valid = inputs[places], following[places]
        self.rest = inputs[others], following[others]

    def batches(self, epoch: int, first: int, part: Part) -> Iterator[Batch]:
        """Random windows; a process takes every ``part.count``-th row of a step."""
        source = np.random.default_rng((self.seed, epoch))
        starts = source.integers(0, len(self.text.train) - self.context, (self.steps_per_epoch, self.batch_size))
        for joint in torch.from_numpy(starts)[first:]:
            inputs, following = windows_at(self.text.train, joint[part.rank :: part.count], self.context)
            yield Batch((inputs.to(self.device), following.to(self.device)), len(inputs), self.batch_size)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Mean cross entropy in nats per byte."""
        inputs, following = batch.content
        loss = next_byte_loss(model(inputs), following)
        if self.num_losses == len(self._losses):
            self._losses = torch.cat([self._losses, self._losses.new_zeros(self.steps_per_epoch)])
        self._losses[self.num_losses] = loss.detach()
        self.num_losses += 1
        return loss

    @property
    def losses(self) -> Tensor:
        """Training loss of every step so far, before the update of that step."""
        return self._losses[: self.num_losses]

    def evaluate(self, model: nn.Module, part: Part) -> Mapping[str, Total]:
        """``valid_loss``, the mean loss per byte on the windows for validation."""
        own = tuple(values[part.rank :: part.count] for values in self.valid)
        return {"valid_loss": Total(self._sum(model, *own), own[0].numel())}

    @torch.no_grad()
    def test_loss(self, model: nn.Module) -> float:
        """The mean loss per byte on all other windows of the measured text."""
        return self._sum(model, *self.rest) / max(1, self.rest[0].numel())

    def state_dict(self) -> dict[str, Any]:
        """The losses so far."""
        return {"losses": self.losses.cpu()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        self._losses = state["losses"].to(self.device)
        self.num_losses = len(self._losses)

    def _sum(self, model: nn.Module, inputs: Tensor, following: Tensor) -> float:
        total = 0.0
        for x, y in zip(torch.split(inputs, ROWS_AT_ONCE), torch.split(following, ROWS_AT_ONCE), strict=True):
            total += next_byte_loss(model(x.to(self.device)), y.to(self.device)).item() * y.numel()
        return total


class EpochTask(Task):
    """Train on windows of one text; measure the loss on another.

    An epoch shows every whole window once, in a random order. The first window of an epoch begins at a random byte, so
    the windows of two epochs differ.

    Args:
        train: Bytes of the training text.
        test: Bytes of the other text.
        context: Number of bytes per window.
        batch_size: Number of windows per step; windows left over are dropped.
        seed: Seed of the order.
        num_test: Number of windows of the other text to measure on, evenly spaced.
    """

    def __init__(
        self, train: Tensor, test: Tensor, context: int, batch_size: int, seed: int, num_test: int = 256
    ) -> None:
        self.text, self.test, self.context, self.batch_size, self.seed = train, test, context, batch_size, seed
        self.num_windows = (len(train) - 1) // context - 1
        self.num_test = num_test
        if self.steps_per_epoch < 1:
            need = f"at least {(batch_size + 1) * context + 1} bytes, for one batch of windows"
            checks.refuse("EpochTask", "train", need, len(train))

    @property
    def steps_per_epoch(self) -> int:
        """Number of whole batches."""
        return self.num_windows // self.batch_size

    def batches(self, epoch: int, first: int, part: Part) -> Iterator[Batch]:
        """The batches of an epoch from number ``first`` on; a process takes every ``part.count``-th window."""
        rng = np.random.default_rng((self.seed, epoch))
        starts = int(rng.integers(self.context)) + self.context * torch.from_numpy(rng.permutation(self.num_windows))
        for joint in torch.split(starts, self.batch_size)[first : self.steps_per_epoch]:
            own = joint[part.rank :: part.count]
            yield Batch(windows_at(self.text, own, self.context), len(own), len(joint))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Mean loss in nats per byte."""
        text, following = batch.content
        return next_byte_loss(model(text), following)

    def evaluate(self, model: nn.Module, part: Part) -> Mapping[str, Total]:
        """``test_loss`` in nats per byte, and ``accuracy``, the share of bytes that are predicted correctly."""
        starts = torch.linspace(0, len(self.test) - self.context - 1, self.num_test).long()[part.rank :: part.count]
        loss, correct, count = 0.0, 0.0, 0
        for some in torch.split(starts, self.batch_size):
            text, following = windows_at(self.test, some, self.context)
            logits = model(text)
            loss += F.cross_entropy(logits.flatten(0, 1), following.flatten(), reduction="sum").item()
            correct += (logits.argmax(-1) == following).sum().item()
            count += following.numel()
        return {"test_loss": Total(loss, count), "accuracy": Total(correct, count)}
