"""The exponential moving average of a model's weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    r"""An average over the steps in which older weights count less and less.

    .. math:: \bar w_0 = w_0, \qquad \bar w_t = \alpha\bar w_{t-1} + (1-\alpha) w_t

    The running statistics of batch norm are averaged in the same way, so that they belong to the averaged weights;
    whole numbers, such as its count of batches, are taken over. α is the decay, near 1. The paper's formula has α and
    1 - α the other way round, and values of α from 0.9 to 0.999 for it that would average next to nothing.

    Args:
        model: whose weights to begin with.
        decay: α.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Take in the weights of one more step."""
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                self.state[name].lerp_(tensor, 1 - self.decay)
            else:
                self.state[name].copy_(tensor)

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """The averaged weights in the model while the block lasts, and its own again after it."""
        own = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        model.load_state_dict(self.state)
        try:
            yield
        finally:
            model.load_state_dict(own)

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved average."""
        for name, tensor in self.state.items():
            tensor.copy_(state[name])
