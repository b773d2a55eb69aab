"""TrainingSettings: how to train, with SGD or AdamW."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from eigencurve import Schedule
from eigencurve.schedules.base import require_schedule
from paper import checks

OPTIMIZERS = ("sgd", "adamw")
# Each precision in the words of a results page.
PRECISION_WORDS = {
    "auto": "float32, or mixed precision on a GPU",
    "float32": "float32",
    "bfloat16": "bfloat16 mixed precision",
}


@dataclass(frozen=True)
class TrainingSettings:
    r"""How to train: :math:`v \leftarrow mv + g + \delta w`, :math:`w \leftarrow w - f(t) v`, or by AdamW.

    AdamW decouples its weight decay: with the bias-corrected moments m and v of the gradient,
    :math:`w \leftarrow w - f(t) (m / (\sqrt v + 10^{-8}) + \delta w)`.
    """

    schedule: Schedule  # learning-rate schedule f, with one rate per step of the run
    epochs: int  # number of epochs
    momentum: float = 0.0  # momentum m of SGD
    weight_decay: float = 0.0  # weight decay δ
    # Decay α of the averaged weights :math:`\bar w \leftarrow \alpha\bar w + (1-\alpha)w`, which are then evaluated;
    # None evaluates the weights themselves.
    ema_decay: float | None = None
    # Largest norm of the gradient; a larger gradient is scaled down. None disables clipping.
    max_norm: float | None = None
    # Precision of the forward and backward pass. ``"float32"`` is full precision; ``"bfloat16"`` is mixed precision on
    # any device, with weights, updates and evaluations in float32; ``"auto"`` is mixed precision on a CUDA device and
    # float32 elsewhere.
    precision: str = "auto"
    evaluate_every: int = 1  # number of epochs between evaluations; the last epoch is always evaluated
    optimizer: str = "sgd"  # ``"sgd"`` or ``"adamw"``
    betas: tuple[float, float] = (0.9, 0.999)  # decay rates of AdamW's first and second moment

    def __post_init__(self) -> None:
        checks.choice("TrainingSettings", "optimizer", self.optimizer, OPTIMIZERS)
        checks.choice("TrainingSettings", "precision", self.precision, tuple(PRECISION_WORDS))
        checks.whole("TrainingSettings", "epochs", self.epochs, minimum=1)
        checks.whole("TrainingSettings", "evaluate_every", self.evaluate_every, minimum=1)
        require_schedule("TrainingSettings", self.schedule)
        for name in ("momentum", "weight_decay"):
            checks.at_least("TrainingSettings", name, getattr(self, name), 0.0)
        if self.ema_decay is not None and not 0 <= self.ema_decay < 1:
            checks.refuse("TrainingSettings", "ema_decay", "at least 0 and below 1", self.ema_decay)
        if self.max_norm is not None:
            checks.positive("TrainingSettings", "max_norm", self.max_norm)
        if self.optimizer == "adamw" and self.momentum:
            remedy = "Its first moment has the decay rate betas[0]."
            checks.refuse("TrainingSettings", "momentum", "0 for AdamW", self.momentum, remedy)

    def make_optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """A new optimizer of ``parameters``, at the first rate of the schedule."""
        rate = self.schedule(0)
        if self.optimizer == "adamw":
            return torch.optim.AdamW(parameters, lr=rate, betas=self.betas, weight_decay=self.weight_decay)
        return torch.optim.SGD(parameters, lr=rate, momentum=self.momentum, weight_decay=self.weight_decay)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**self.__dict__, "schedule": self.schedule.to_dict()}
