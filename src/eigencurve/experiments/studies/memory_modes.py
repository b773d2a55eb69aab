"""What a memory budget costs: locked against full Lanczos on a ResNet-20, and a whole ResNet-18 in few vectors.

``python -m eigencurve.experiments.studies.memory_modes results`` writes ``memory_modes.md`` there. The folder that
EIGENCURVE_DATA names must hold the checkpoint and images of :mod:`eigencurve.experiments.studies.resnet20_spectrum`.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from eigencurve import __version__
from eigencurve._arrays import Array
from eigencurve.experiments.models.resnet import load_npz, resnet18, resnet20
from eigencurve.experiments.studies.resnet20_spectrum import TOTAL_STEPS, WEIGHT_DECAY, cifar_batch, trained_data
from eigencurve.hessian.estimate import shortened
from eigencurve.hessian.lanczos import LanczosRun, lanczos, without_copies
from eigencurve.hessian.memory import plan_memory
from eigencurve.hessian.operator import HessianOperator
from eigencurve.hessian.settling import log_curve
from eigencurve.spectrum.quadrature import sharpen

MODULE = "eigencurve.experiments.studies.memory_modes"
NUM_IMAGES = 200
LARGE_BATCH = 2
BUDGETS = [(102, 250), (62, 150), (42, 150)]


def resnet20_runs(data: Path, budgets: list[tuple[int, int]]) -> list[str]:
    """Rows of a table: each (vectors, steps) beside the full basis of the longest."""
    model = resnet20()
    load_npz(model, data / "checkpoints" / "resnet20_cifar10.npz")
    operator = HessianOperator(model, F.cross_entropy, cifar_batch(data / "cifar10_lossless_subset.npz", NUM_IMAGES))
    start = torch.randn(operator.dim, generator=torch.Generator().manual_seed(0))
    longest = max(steps for _, steps in budgets)
    full = lanczos(operator, start, longest, memory_budget=(longest + 2) * 4 * operator.dim)
    settled = _curve(full)
    rows = [_row("full", steps, full, settled) for steps in sorted({steps for _, steps in budgets})]
    for vectors, steps in budgets:
        run = lanczos(operator, start, steps, memory_budget=vectors * 4 * operator.dim)
        rows.append(_row(str(vectors), steps, run, settled))
    return rows


def _row(vectors: str, steps: int, run: LanczosRun, settled: Array) -> str:
    part = shortened(run, steps, torch.float32)
    error = np.abs(_curve(part) - settled).max()
    return f"| {vectors} | {steps} | {part.num_distinct} ({part.num_distinct / steps:.0%}) | {error:.3f} |"


def _curve(run: LanczosRun) -> Array:
    return log_curve(sharpen(*without_copies(run, torch.float32), scale=WEIGHT_DECAY), WEIGHT_DECAY, TOTAL_STEPS)


def measure_resnet18(vectors: int, steps: int) -> str:
    """A row of a table: a ResNet-18 within ``vectors`` vectors, in this process, with its peak of memory."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = resnet18()
    source = torch.Generator().manual_seed(0)
    batch = (torch.randn(LARGE_BATCH, 3, 32, 32, generator=source), torch.arange(LARGE_BATCH))
    operator = HessianOperator(model, F.cross_entropy, batch, check=False)
    start = torch.randn(operator.dim, generator=source)
    operator(start)  # the peak of a product alone, with the graph that it builds, is behind us
    plan = plan_memory(operator.dim, steps, vectors * 4 * operator.dim)
    before, begun = _peak(), time.monotonic()
    run = lanczos(operator, start, steps, memory_budget=plan.budget_bytes)
    seconds, grown = time.monotonic() - begun, _peak() - before
    return (
        f"| {vectors} | {steps} | {run.num_distinct} ({run.num_distinct / steps:.0%}) | {plan.num_bytes / 1e6:.0f} "
        f"| {grown / 1e6:.0f} | {seconds:.0f} |"
    )


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _measured_apart(vectors: int, steps: int) -> str:
    """The same in a process of its own, whose peak is its own."""
    command = [
        sys.executable,
        "-m",
        MODULE,
        "--resnet18",
        str(vectors),
        str(steps),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def page(small: list[str], large: list[str]) -> list[str]:
    """The rows of both tables, with all that they need to be understood."""
    return [
        "# What a memory budget costs", "", f"Command: `python -m {MODULE} results`", "",
        f"eigencurve {__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads, seed 0.", "",
        f"## ResNet-20 (272,474 parameters), trained, {NUM_IMAGES} images of CIFAR-10", "",
        f"The error is the largest abs ln(f/f_full) of the schedule (T = {TOTAL_STEPS:,}, weight decay "
        f"{WEIGHT_DECAY:g}) against the whole basis of the longest run.", "",
        "| vectors allowed | products | distinct nodes | error of the schedule |", "| --- | --- | --- | --- |", *small,
        "", f"## ResNet-18 (11,173,962 parameters, none left out), untrained, {LARGE_BATCH} random images", "",
        "Growth of the process's peak is over what the model and a product had needed before.", "",
        "| vectors allowed | products | distinct nodes | planned (MB) | growth of the peak (MB) | time (s) |",
        "| --- | --- | --- | --- | --- | --- |", *large,
    ]  # fmt: skip


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results"))
    parser.add_argument("--resnet18", type=int, nargs=2, metavar=("VECTORS", "STEPS"), help="print one row and stop")
    options = parser.parse_args()
    if options.resnet18:
        print(measure_resnet18(*options.resnet18))
        return
    try:
        data = trained_data()
    except FileNotFoundError as error:
        parser.error(str(error))
    large = [_measured_apart(8, 20), _measured_apart(40, 150)]
    small = resnet20_runs(data, BUDGETS)
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "memory_modes.md").write_text("\n".join(page(small, large)) + "\n")


if __name__ == "__main__":
    main()
