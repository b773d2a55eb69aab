"""The tasks: ten small trainings, four that may shape rules and constants, and six that are only reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from benchmarks.decisions.data import Examples
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, AdamW, Muon, Optimizer

from benchmarks.decisions import data, models

SHAPING, REPORTED = "shaping", "reported"
NUM_RATES = 7
LETTERS = 50


@dataclass(frozen=True, eq=False)
class Task:
    """One training problem; everything but the schedule and the seed.

    Attributes:
        name: Name of the task and of its files.
        role: Whether it may shape rules (``"shaping"``) or is only reported.
        about: Network, data and optimizer in words.
        examples: Function that loads the data.
        model: Function that makes the network, from the current random state.
        loss: Mean loss of outputs and targets.
        optimizer: Name of the optimizer: ``"sgd"``, ``"adamw"`` or ``"muon"``.
        middle_rate: Middle of the grid of peak rates.
        total_steps: Steps T of the longer runs; the shorter ones have half as many.
        batch_size: Examples per step.
        momentum, nesterov, weight_decay: Settings of the optimizer.
        warmup_steps: Steps of linear warmup, part of every run.
        max_norm: Largest norm of the gradient; None does not clip.
    """

    name: str
    role: str
    about: str
    examples: Callable[[], Examples]
    model: Callable[[], nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor]
    optimizer: str
    middle_rate: float
    total_steps: int
    batch_size: int
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    warmup_steps: int = 0
    max_norm: float | None = None

    @property
    def horizons(self) -> tuple[int, int]:
        """Numbers of steps of the two kinds of runs."""
        return self.total_steps // 2, self.total_steps

    @property
    def rates(self) -> tuple[float, ...]:
        """Peak rates, a factor of two apart."""
        return tuple(self.middle_rate * 2.0**place for place in range(-(NUM_RATES // 2), NUM_RATES // 2 + 1))

    @cached_property
    def data(self) -> Examples:
        """Training and validation examples."""
        return self.examples()

    def new_model(self, seed: int) -> nn.Module:
        """A network with the initial weights of ``seed``."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return self.model()

    def new_optimizers(self, model: nn.Module, lr: float) -> list[Optimizer]:
        """The optimizers of one run: one, or two with Muon, which trains the matrices of hidden layers only."""
        parameters = dict(model.named_parameters())
        if self.optimizer == "sgd":
            return [SGD(parameters.values(), lr, self.momentum, 0, self.weight_decay, self.nesterov)]
        if self.optimizer == "adamw":
            return [AdamW(parameters.values(), lr, weight_decay=self.weight_decay)]
        hidden = {name for name, value in parameters.items() if value.ndim == 2 and name.startswith("blocks.")}
        matrices = [value for name, value in parameters.items() if name in hidden]
        others = [value for name, value in parameters.items() if name not in hidden]
        muon = Muon(matrices, lr, weight_decay=self.weight_decay, adjust_lr_fn="match_rms_adamw")
        return [muon, AdamW(others, lr, weight_decay=self.weight_decay)]


TASKS = {
    task.name: task
    for task in (
        Task(
            "cnn", SHAPING, "CNN without normalisation, CIFAR-10 at 16 × 16, SGD with momentum 0.9",
            lambda: data.images(16), models.cnn, F.cross_entropy,
            "sgd", 0.1, 1024, 64, momentum=0.9, weight_decay=5e-4,
        ),
        Task(
            "transformer", SHAPING, "character transformer, Penn Treebank, AdamW",
            lambda: data.characters(32), lambda: models.CharacterTransformer(LETTERS, 32), models.token_loss,
            "adamw", 0.016, 1024, 16, weight_decay=0.1, warmup_steps=64, max_norm=1.0,
        ),
        Task(
            "mlp", SHAPING, "two hidden layers, CIFAR-10 at 8 × 8, SGD without momentum",
            lambda: data.flat_images(8), lambda: models.mlp(192, 128, 128, 10), F.cross_entropy,
            "sgd", 0.1, 4096, 32, weight_decay=5e-4,
        ),
        Task(
            "autoencoder", SHAPING, "tanh autoencoder, grey CIFAR-10 at 16 × 16, AdamW",
            lambda: data.grey_images(16), lambda: models.mlp(256, 128, 32, 128, 256, activation=nn.Tanh), F.mse_loss,
            "adamw", 0.002, 4096, 32, weight_decay=0.01,
        ),
        Task(
            "resnet", REPORTED, "residual network with batch norm, CIFAR-10 at 16 × 16, SGD with Nesterov momentum 0.9",
            lambda: data.images(16), models.resnet, F.cross_entropy,
            "sgd", 0.1, 1024, 64, momentum=0.9, nesterov=True, weight_decay=5e-4,
        ),
        Task(
            "lstm", REPORTED, "character LSTM, Penn Treebank, SGD with clipped gradients",
            lambda: data.characters(32), lambda: models.CharacterLSTM(LETTERS), models.token_loss,
            "sgd", 8.0, 2048, 16, max_norm=1.0,
        ),
        Task(
            "inpainting", REPORTED, "regression of the middle of an image on its rest, MLP, SGD with momentum 0.9",
            lambda: data.masked_images(16, 6), lambda: models.mlp(220, 128, 128, 36, activation=nn.GELU), F.mse_loss,
            "sgd", 0.1, 4096, 32, momentum=0.9, weight_decay=1e-4,
        ),
        Task(
            "logistic", REPORTED, "logistic regression on a4a (convex), SGD without momentum",
            data.incomes, lambda: nn.Linear(123, 2), F.cross_entropy,
            "sgd", 0.5, 8192, 8,
        ),
        Task(
            "muon", REPORTED, "character transformer, Penn Treebank, Muon, with AdamW for embeddings and vectors",
            lambda: data.characters(32), lambda: models.CharacterTransformer(LETTERS, 32), models.token_loss,
            "muon", 0.016, 1024, 16, weight_decay=0.1, warmup_steps=64, max_norm=1.0,
        ),
        Task(
            "vit", REPORTED, "vision transformer on 16 patches, CIFAR-10 at 16 × 16, AdamW",
            lambda: data.images(16), lambda: models.PatchTransformer(16), F.cross_entropy,
            "adamw", 0.004, 1024, 32, weight_decay=0.05, warmup_steps=64, max_norm=1.0,
        ),
    )
}  # fmt: skip
