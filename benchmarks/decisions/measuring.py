"""Spectra and gradient noise of half-length runs: ``python -m benchmarks.decisions.measuring [TASK]...``.

A user who measures has a finished run: here one of T/2 steps under a cosine. At its end, the spectrum of the Hessian,
in the metric of AdamW where that is the optimizer, and the noise of one batch are measured on 1,000 training examples.
Muon has no diagonal metric, so its task has no spectrum.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from benchmarks.decisions.shapes import NUM_SEEDS, schedule_of
from benchmarks.decisions.tasks import TASKS, Task

import eigencurve as ec
from benchmarks.decisions import training
from eigencurve.hessian import HessianOperator, PreconditionedOperator, estimate_noise, estimate_spectrum

FOLDER = Path(__file__).with_name("measured")
SHAPE = "cosine"
NUM_EXAMPLES = 1000
# Every other rate of the grid.
PLACES = (0, 2, 4, 6)


def path_of(task: Task, lr: float, seed: int) -> Path:
    """File with the spectrum and the noise of one run."""
    return FOLDER / f"{task.name}_lr{lr:g}_seed{seed}.npz"


def measure(task: Task, lr: float, seed: int) -> bool:
    """Train one run of half the length and measure it; return whether it ended without a divergence."""
    run = training.start(task, seed)
    training.advance(run, np.array(schedule_of(task, SHAPE, task.horizons[0], lr).values()))
    if run.diverged:
        return False
    operator = operator_of(run)
    decay = task.weight_decay or 5e-4
    estimate = estimate_spectrum(
        operator, weight_decay=decay, total_steps=task.total_steps, seed=seed, progress=False, num_products=150
    )
    noise = estimate_noise(operator, estimate, task.batch_size, seed=seed, progress=False)
    path = path_of(task, lr, seed)
    path.parent.mkdir(exist_ok=True)
    ec.save_spectrum(estimate.spectrum, path, estimate.measurement(), noise)
    return True


def operator_of(run: training.Run) -> HessianOperator | PreconditionedOperator:
    """The Hessian of the run's loss on some training examples, in the metric of its optimizer."""
    x, y = training.some_training_rows(run.task)
    count = min(NUM_EXAMPLES, len(x))
    operator = HessianOperator(run.model, run.task.loss, (x[:count], y[:count]))
    return operator.preconditioned_by(run.optimizers[0]) if run.task.optimizer == "adamw" else operator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="default: all tasks")
    torch.set_num_threads(1)
    for name in parser.parse_args().tasks or TASKS:
        task = TASKS[name]
        if task.optimizer == "muon":
            continue
        for seed in range(NUM_SEEDS):
            for lr in (task.rates[place] for place in PLACES):
                if not path_of(task, lr, seed).exists():
                    ended = measure(task, lr, seed)
                    print(f"{name}, rate {lr:g}, seed {seed}: {'measured' if ended else 'diverged'}", flush=True)


if __name__ == "__main__":
    main()
