"""Train what the tables do not contain: ``python -m benchmarks.decisions.train [TASK]...``."""

from __future__ import annotations

import argparse

import torch
from benchmarks.decisions.shapes import NUM_SEEDS, grid
from benchmarks.decisions.tables import Table
from benchmarks.decisions.tasks import TASKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], metavar="TASK", help="default: all tasks")
    torch.set_num_threads(1)
    for name in parser.parse_args().tasks or TASKS:
        task = TASKS[name]
        table, schedules = Table(task), grid(task)
        for seed in range(NUM_SEEDS):
            missing = len(table.missing(schedules, [seed]))
            print(f"{name}, seed {seed}: {missing} of {len(schedules)} runs to train", flush=True)
            table.complete(schedules, [seed])


if __name__ == "__main__":
    main()
