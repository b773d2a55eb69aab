"""Predicting the next byte as a training task in epochs: every window of the text once, in a random order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paper import checks
from paper.data.byte_text import windows_at
from paper.models.transformer import next_byte_loss
from paper.training.task import Batch, Part, Total


class EpochTask:
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
        self.steps_per_epoch = self.num_windows // batch_size
        if self.steps_per_epoch < 1:
            need = f"at least {(batch_size + 1) * context + 1} bytes, for one batch of windows"
            checks.refuse("EpochTask", "train", need, len(train))

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

    def state_dict(self) -> dict[str, Any]:
        """Empty: no state is passed between steps."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Do nothing: there is no state."""
