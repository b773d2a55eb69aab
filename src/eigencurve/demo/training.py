"""The demo's task: a small network on handwritten digits, trained once in the usual way or many times at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn import functional as F

from eigencurve._arrays import Array
from eigencurve.adapters.torch import ScheduleLR
from eigencurve.schedules.base import Schedule

NUM_TRAIN, BATCH_SIZE = 1200, 32
MOMENTUM, WEIGHT_DECAY = 0.9, 5e-4

Examples = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class Digits:
    """Images of 8 × 8 pixels in [0, 1] and their labels, split at random."""

    train: Examples
    test: Examples


def digits(seed: int) -> Digits:
    """scikit-learn's digits, shuffled by ``seed``."""
    bunch = load_digits()
    order = np.random.default_rng(seed).permutation(len(bunch.target))
    x = torch.from_numpy(bunch.images[order] / 16).float().unsqueeze(1)
    y = torch.from_numpy(bunch.target[order]).long()
    return Digits((x[:NUM_TRAIN], y[:NUM_TRAIN]), (x[NUM_TRAIN:], y[NUM_TRAIN:]))


def network(seed: int) -> nn.Module:
    """A perceptron with two hidden layers.

    >>> sum(p.numel() for p in network(0).parameters())
    6570
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Flatten(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10)
        )


def optimizer_of(model: nn.Module, lr: float) -> torch.optim.Optimizer:
    """SGD with the momentum and the weight decay of the demo."""
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)


def batches(examples: Examples, count: int, seed: int) -> list[Examples]:
    """Random batches, drawn with replacement."""
    (x, y), source = examples, torch.Generator().manual_seed(seed)
    drawn = [torch.randint(0, len(x), (BATCH_SIZE,), generator=source) for _ in range(count)]
    return [(x[batch], y[batch]) for batch in drawn]


def train(model: nn.Module, data: Digits, schedule: Schedule, seed: int) -> float:
    """Train for all steps of the schedule; return the final loss on the training images."""
    optimizer = optimizer_of(model, schedule(0))
    scheduler = ScheduleLR(optimizer, schedule)
    for x, y in batches(data.train, schedule.total_steps, seed):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        scheduler.step()
    with torch.no_grad():
        return F.cross_entropy(model(data.train[0]), data.train[1]).item()


def train_together(
    data: Digits, schedules: Sequence[Schedule], seeds: Sequence[int], after_step: Callable[[], None] = lambda: None
) -> tuple[Array, Array]:
    """Train with every schedule from every start at once; each run equals :func:`train`.

    A start is a seed: its network and its batches are the same for all schedules. The runs are rows of stacked
    tensors, which is about a hundred times faster than one run after the other. ``after_step`` is called after each
    step.

    Returns:
        Final losses on all training images and final accuracies on the test images, of shape (schedules, starts).
    """
    model = network(0)

    def loss_of(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(functional_call(model, weights, (x,)), y)

    def accuracy_of(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        predicted: Tensor = functional_call(model, weights, (x,)).argmax(1)
        return (predicted == y).double().mean()

    starts, _ = stack_module_state([network(seed) for seed in seeds])
    weights = {name: w.detach().expand(len(schedules), *w.shape).clone() for name, w in starts.items()}
    velocity = {name: torch.zeros_like(w) for name, w in weights.items()}
    slope = vmap(vmap(grad(loss_of)), in_dims=(0, None, None))
    rates = torch.from_numpy(np.stack([schedule.values() for schedule in schedules], axis=1)).float()
    drawn = [batches(data.train, schedules[0].total_steps, seed) for seed in seeds]
    for rate, step in zip(rates, zip(*drawn, strict=True), strict=True):
        x, y = (torch.stack(part) for part in zip(*step, strict=True))
        gradients = slope(weights, x, y)
        for name, w in weights.items():
            velocity[name].mul_(MOMENTUM).add_(gradients[name] + WEIGHT_DECAY * w)
            w.sub_(rate.view(-1, *[1] * (w.ndim - 1)) * velocity[name])
        after_step()
    final, right = (
        vmap(vmap(measure, in_dims=(0, None, None)), in_dims=(0, None, None))(weights, *examples)
        for measure, examples in ((loss_of, data.train), (accuracy_of, data.test))
    )
    return final.double().numpy(), right.numpy()
