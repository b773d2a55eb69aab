"""Exponential moving average of a model's weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    r"""The exponential moving average of the weights over the steps.

    .. math:: \bar w_0 = w_0, \qquad \bar w_t = \alpha\bar w_{t-1} + (1-\alpha) w_t

    The running statistics of batch norm are averaged in the same way, so they match the averaged weights; integer
    buffers, such as its number of batches, are copied. The paper prints the formula with α and 1 - α exchanged, which
    with its values of α, 0.9 to 0.999, would average almost nothing.

    Args:
        model: Model with the initial weights.
        decay: Decay α of the average, close to 1.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Update the average with the weights after one more step."""
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                self.state[name].lerp_(tensor, 1 - self.decay)
            else:
                self.state[name].copy_(tensor)

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """Put the averaged weights into the model inside the block, and restore its own weights afterwards."""
        own = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        model.load_state_dict(self.state)
        try:
            yield
        finally:
            model.load_state_dict(own)

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from a saved average."""
        for name, tensor in self.state.items():
            tensor.copy_(state[name])
