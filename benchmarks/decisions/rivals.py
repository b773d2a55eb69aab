"""What a user would install instead: ``python -m benchmarks.decisions.rivals [TASK]...``.

Prodigy and D-Adaptation find their own rate and run under a cosine; schedule-free runs at every rate of the grid. Each
is trained with the task's batches, weight decay, clipping and warmup. The losses are kept in ``rivals.json``. Needs
``pip install prodigyopt dadaptation schedulefree``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.decisions.models import measure_statistics
from benchmarks.decisions.shapes import NUM_SEEDS, with_warmup
from benchmarks.decisions.tasks import TASKS, Task
from torch.optim import Optimizer

import eigencurve as ec
from benchmarks.decisions import training
from eigencurve._files import write_atomically

PATH = Path(__file__).with_name("rivals.json")
MakeOptimizer = Callable[[Iterable[torch.Tensor], float], Optimizer]
# Their packages say: leave the rate at 1.
OWN_RATE = 1.0
DIGITS = 6


def optimizer_makers(task: Task) -> dict[str, MakeOptimizer]:
    """The rivals of a task by name; each makes its optimizer from the parameters and a rate."""
    import dadaptation
    import prodigyopt
    import schedulefree

    decay = task.weight_decay
    inertia = task.momentum or 0.9  # schedule-free needs a momentum
    prodigy = partial(prodigyopt.Prodigy, weight_decay=decay, use_bias_correction=True, safeguard_warmup=True)
    if task.optimizer == "sgd":
        adapted = partial(dadaptation.DAdaptSGD, momentum=task.momentum, weight_decay=decay)
        free = partial(schedulefree.SGDScheduleFree, momentum=inertia, weight_decay=decay)
    else:
        adapted = partial(dadaptation.DAdaptAdam, weight_decay=decay, decouple=True)
        free = partial(schedulefree.AdamWScheduleFree, weight_decay=decay)
    free = partial(free, warmup_steps=task.warmup_steps)
    return {
        "prodigy": lambda parameters, _: prodigy(parameters, lr=OWN_RATE),
        "d-adaptation": lambda parameters, _: adapted(parameters, lr=OWN_RATE),
        "schedule-free": lambda parameters, lr: free(parameters, lr=lr),
    }


def rates_of(task: Task, rival: str) -> tuple[float, ...]:
    """The rates that a rival runs at: all of the grid, or its own."""
    return task.rates if rival == "schedule-free" else (OWN_RATE,)


def train(task: Task, rival: str, lr: float, seed: int) -> dict[str, Any]:
    """One run of T steps: final losses, and those of the weight averages."""
    run = training.start(task, seed)
    optimizer = optimizer_makers(task)[rival](run.model.parameters(), lr)
    run.optimizers = [optimizer]
    if rival == "schedule-free":
        optimizer.train()
        training.advance(run, np.full(task.total_steps, lr))
        optimizer.eval()
        measure_statistics(run.model, training.some_training_rows(task)[0])
    else:
        training.advance(run, with_warmup(task, ec.cosine(task.total_steps - task.warmup_steps, lr)).values())
    outcome = training.finish(run)
    return {
        "train": _kept(outcome.final_train), "valid": _kept(outcome.final_valid),
        "averaged_train": [_kept(loss) for loss in outcome.averaged_train],
        "averaged_valid": [_kept(loss) for loss in outcome.averaged_valid],
    }  # fmt: skip


def key_of(task: Task, rival: str, lr: float, seed: int) -> str:
    """Name of one run in the file."""
    return f"{task.name}, {rival}, rate {lr:g}, seed {seed}"


def load() -> dict[str, Mapping[str, Any]]:
    """The finished runs by key."""
    return json.loads(PATH.read_text()) if PATH.exists() else {}


def _kept(loss: float) -> float | None:
    """A loss as it is kept; None after a divergence."""
    return float(f"{loss:.{DIGITS}g}") if np.isfinite(loss) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="default: all tasks")
    torch.set_num_threads(1)
    for name in parser.parse_args().tasks or TASKS:
        task = TASKS[name]
        for rival in optimizer_makers(task):
            for lr in rates_of(task, rival):
                for seed in range(NUM_SEEDS):
                    key, finished = key_of(task, rival, lr, seed), load()
                    if key not in finished:
                        finished[key] = train(task, rival, lr, seed)
                        write_atomically(PATH, json.dumps(finished, indent=0, sort_keys=True).encode())
                        print(f"{key}: validation loss {finished[key]['valid']}", flush=True)


if __name__ == "__main__":
    main()
