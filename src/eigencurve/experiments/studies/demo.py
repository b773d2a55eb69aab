"""The main job from end to end on handwritten digits: train, measure the spectrum, make the schedule, race it.

``python -m eigencurve.experiments.studies.demo demo-output`` prints the tables and writes figures and
a page to that folder.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve._arrays import Array
from eigencurve.adapters.torch import ScheduleLR, torch_schedule
from eigencurve.experiments.studies.demo_page import write_page
from eigencurve.hessian.estimate import SpectrumEstimate
from eigencurve.schedules.base import Schedule

NUM_TRAIN, BATCH_SIZE, MOMENTUM = 1200, 32, 0.9
LR, MIN_LR, WEIGHT_DECAY = 0.1, 1e-4, 5e-4
# The run that the spectrum is taken from, and the shorter ones that are compared.
REFERENCE_STEPS, TOTAL_STEPS = 400, 200
NUM_PROBED = 400


@dataclass(frozen=True, eq=False)
class Digits:
    """Images of 8 × 8 pixels in [0, 1] and labels, split at random."""

    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class Outcome:
    """How one training run ended: its losses on the way, and test accuracy and training loss at the end."""

    losses: Array
    accuracy: float
    train_loss: float


def digits(seed: int) -> Digits:
    """scikit-learn's digits, shuffled by ``seed``."""
    bunch = load_digits()
    order = np.random.default_rng(seed).permutation(len(bunch.target))
    x = torch.from_numpy(bunch.images[order] / 16).float().unsqueeze(1)
    y = torch.from_numpy(bunch.target[order]).long()
    return Digits((x[:NUM_TRAIN], y[:NUM_TRAIN]), (x[NUM_TRAIN:], y[NUM_TRAIN:]))


def network(seed: int) -> nn.Module:
    """A small convolutional net with batch norm; the global random state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10),
        )  # fmt: skip


def train(model: nn.Module, data: Digits, schedule: Schedule, seed: int) -> Outcome:
    """SGD with momentum and weight decay for as many steps as the schedule has."""
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
    return Outcome(np.array(losses), correct, final)


def schedules(curve: Schedule) -> dict[str, Schedule]:
    """Eigencurve and its rivals, at equal budgets and rates."""
    return {
        "eigencurve": curve,
        "cosine": ec.cosine(TOTAL_STEPS, LR, MIN_LR),
        "step decay": ec.step_decay(TOTAL_STEPS, LR),
        "elastic step": ec.elastic_step(TOTAL_STEPS, LR),
        "inverse time": ec.inverse_time(TOTAL_STEPS, LR, MIN_LR),
    }


def measure(data: Digits, seed: int, progress: bool) -> tuple[Schedule, SpectrumEstimate]:
    """Train a reference network, then its spectrum and the schedule for the short runs."""
    model = network(seed)
    train(model, data, ec.cosine(REFERENCE_STEPS, LR, MIN_LR), seed)
    batch = (data.train[0][:NUM_PROBED], data.train[1][:NUM_PROBED])
    return torch_schedule(
        model, F.cross_entropy, batch, TOTAL_STEPS, lr=LR, weight_decay=WEIGHT_DECAY, min_lr=MIN_LR, seed=seed,
        progress=progress,
    )  # fmt: skip


def race(data: Digits, entries: dict[str, Schedule], num_seeds: int, seed: int) -> dict[str, list[Outcome]]:
    """Every schedule from every start; a start has the same network and batches for all schedules."""
    return {
        name: [train(network(seed + 1 + k), data, schedule, seed + 1 + k) for k in range(num_seeds)]
        for name, schedule in entries.items()
    }


def table(outcomes: dict[str, list[Outcome]]) -> list[str]:
    """Mean ± standard deviation over the starts."""
    lines = [f"{'schedule':<14} {'test accuracy (%)':>20} {'training loss':>22}"]
    for name, runs in outcomes.items():
        accuracy, loss = (np.array([getattr(run, key) for run in runs]) for key in ("accuracy", "train_loss"))
        spread = [values.std(ddof=1) if len(runs) > 1 else 0.0 for values in (100 * accuracy, loss)]
        lines.append(
            f"{name:<14} {100 * accuracy.mean():>12.2f} ± {spread[0]:<5.2f} {loss.mean():>13.5f} ± {spread[1]:.5f}"
        )
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Run the demo and print its tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("demo-output"), help="for figures and page")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5, help="how many starts each schedule is run from (default: 5)")
    options = parser.parse_args(arguments)
    begun = time.monotonic()
    torch.set_num_threads(1)  # so small a network only waits for a second thread; and the table is the same anywhere
    data = digits(options.seed)
    print(f"Training a small convolutional net on {NUM_TRAIN} digits for {REFERENCE_STEPS} steps ...", flush=True)
    curve, estimate = measure(data, options.seed, progress=sys.stderr.isatty())
    description = str(estimate.spectrum.describe(WEIGHT_DECAY))
    print(f"\nIts spectrum, from {estimate.num_products} Hessian products ({estimate.reason}):\n{description}\n")
    print(f"The schedule that it calls for:\n{curve.describe()}\n")
    entries = schedules(curve)
    print(
        f"Training from scratch, {TOTAL_STEPS} steps, {options.seeds} starts, {len(entries)} schedules ...", flush=True
    )
    outcomes = race(data, entries, options.seeds, options.seed)
    lines = table(outcomes)
    print("\n" + "\n".join(lines))
    losses = {name: np.mean([run.losses for run in runs], axis=0) for name, runs in outcomes.items()}
    page = write_page(options.folder, estimate, entries, losses, [description, curve.describe(), "\n".join(lines)])
    print(f"\nFigures and page: {page} ({time.monotonic() - begun:.0f} s in all)")


if __name__ == "__main__":
    main()
