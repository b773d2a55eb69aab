"""The main job from end to end on handwritten digits: train, measure the spectrum, make the schedule, race it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve._arrays import Array
from eigencurve.adapters.torch import ScheduleLR, torch_schedule
from eigencurve.experiments.engine.progress import show_status
from eigencurve.experiments.engine.request import Request
from eigencurve.experiments.models.seeding import drawn_from
from eigencurve.experiments.page import ResultsPage
from eigencurve.experiments.studies.demo_page import demo_page
from eigencurve.experiments.training.devices import threads
from eigencurve.hessian.estimate import SpectrumEstimate
from eigencurve.schedules.base import Schedule

SEED, NUM_STARTS = 0, 5
NUM_TRAIN, BATCH_SIZE, MOMENTUM = 1200, 32, 0.9
LR, MIN_LR, WEIGHT_DECAY = 0.1, 1e-4, 5e-4
# Lengths of the run whose spectrum is measured, and of the shorter runs that are compared.
REFERENCE_STEPS, TOTAL_STEPS = 400, 200
NUM_PROBED = 400


@dataclass(frozen=True, eq=False)
class Digits:
    """Images of 8 × 8 pixels in [0, 1] and their labels, split at random."""

    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class RaceResult:
    """The result of one training run.

    Attributes:
        losses: Training loss of every step.
        accuracy: Final accuracy on the test images.
        train_loss: Final loss on the training images.
    """

    losses: Array
    accuracy: float
    train_loss: float


def make(request: Request) -> ResultsPage:
    """Run the demo (about half a minute)."""
    with threads(1):  # the network is too small for more, and one thread gives the same table on every machine
        data = digits(SEED)
        about = f"Training a small convolutional net on {NUM_TRAIN} digits for {REFERENCE_STEPS} steps ..."
        show_status(about, request.progress)
        curve, estimate = measure(data, SEED, request.progress)
        entries = schedules(curve)
        about = f"Training from scratch: {TOTAL_STEPS} steps, {NUM_STARTS} starts, {len(entries)} schedules ..."
        show_status(about, request.progress)
        results = race(data, entries, NUM_STARTS, SEED)
    losses = {name: np.mean([run.losses for run in runs], axis=0) for name, runs in results.items()}
    return demo_page(estimate, entries, losses, str(estimate.spectrum.describe(WEIGHT_DECAY)), table(results))


def digits(seed: int) -> Digits:
    """scikit-learn's digits, shuffled by ``seed``."""
    bunch = load_digits()
    order = np.random.default_rng(seed).permutation(len(bunch.target))
    x = torch.from_numpy(bunch.images[order] / 16).float().unsqueeze(1)
    y = torch.from_numpy(bunch.target[order]).long()
    return Digits((x[:NUM_TRAIN], y[:NUM_TRAIN]), (x[NUM_TRAIN:], y[NUM_TRAIN:]))


def network(seed: int) -> nn.Module:
    """A small convolutional network with batch norm."""
    with drawn_from(seed):
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10),
        )  # fmt: skip


def train(model: nn.Module, data: Digits, schedule: Schedule, seed: int) -> RaceResult:
    """Train with SGD, momentum and weight decay for all steps of the schedule."""
    optimizer = torch.optim.SGD(model.parameters(), lr=schedule(0), momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    scheduler = ScheduleLR(optimizer, schedule)
    source, (x, y), losses = torch.Generator().manual_seed(seed), data.train, []
    model.train()
    for _ in range(schedule.total_steps):
        batch = torch.randint(0, len(x), (BATCH_SIZE,), generator=source)
        loss = F.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        correct = (model(data.test[0]).argmax(1) == data.test[1]).double().mean().item()
        final = F.cross_entropy(model(x), y).item()
    return RaceResult(np.array(losses), correct, final)


def schedules(curve: Schedule) -> dict[str, Schedule]:
    """Eigencurve and its rivals, with the same number of steps and the same rates."""
    return {
        "eigencurve": curve,
        "cosine": ec.cosine(TOTAL_STEPS, LR, MIN_LR),
        "step decay": ec.step_decay(TOTAL_STEPS, LR),
        "elastic step": ec.elastic_step(TOTAL_STEPS, LR),
        "inverse time": ec.inverse_time(TOTAL_STEPS, LR, MIN_LR),
    }


def measure(data: Digits, seed: int, progress: bool) -> tuple[Schedule, SpectrumEstimate]:
    """Train a reference network, measure its spectrum, and make the schedule for the short runs."""
    model = network(seed)
    train(model, data, ec.cosine(REFERENCE_STEPS, LR, MIN_LR), seed)
    batch = (data.train[0][:NUM_PROBED], data.train[1][:NUM_PROBED])
    return torch_schedule(
        model, F.cross_entropy, batch, TOTAL_STEPS, lr=LR, weight_decay=WEIGHT_DECAY, min_lr=MIN_LR, seed=seed,
        progress=progress,
    )  # fmt: skip


def race(data: Digits, entries: dict[str, Schedule], num_starts: int, seed: int) -> dict[str, list[RaceResult]]:
    """Train with every schedule from every start; a start has the same network and batches for all schedules."""
    return {
        name: [train(network(seed + 1 + k), data, schedule, seed + 1 + k) for k in range(num_starts)]
        for name, schedule in entries.items()
    }


def table(results: dict[str, list[RaceResult]]) -> str:
    """Mean ± standard deviation over the starts."""
    lines = [f"{'schedule':<14} {'test accuracy (%)':>20} {'training loss':>22}"]
    for name, runs in results.items():
        accuracy, loss = (np.array([getattr(run, key) for run in runs]) for key in ("accuracy", "train_loss"))
        spread = [values.std(ddof=1) if len(runs) > 1 else 0.0 for values in (100 * accuracy, loss)]
        lines.append(
            f"{name:<14} {100 * accuracy.mean():>12.2f} ± {spread[0]:<5.2f} {loss.mean():>13.5f} ± {spread[1]:.5f}"
        )
    return "\n".join(lines)
