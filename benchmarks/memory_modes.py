"""What a memory budget for Lanczos costs in accuracy and time: ``python -m benchmarks.memory_modes``."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np
import torch
from benchmarks.resnet20_spectrum import NUM_IMAGES, SEED, WEIGHT_DECAY, resnet20_operator
from torch.nn import functional as F

from eigencurve.hessian import HessianOperator, LanczosRun, Settling, lanczos, plan_memory, shortened
from eigencurve.schedules.units import TYPICAL_STEPS
from paper.arrays import Array
from paper.engine.pool import in_new_process
from paper.models.registry import build
from paper.page import ResultsPage, made_by_line, markdown_table

LARGE_BATCH = 2
# (vectors, products) for the two networks.
SMALL_BUDGETS = ((102, 250), (62, 150), (42, 150))
LARGE_BUDGETS = ((8, 20), (40, 150))


def peak_bytes() -> int:
    """Peak memory of this process, without that of the process that started it."""
    return _status("VmHWM")


def reset_peak() -> int:
    """Forget the peak so far, and return the memory in use."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def make() -> ResultsPage:
    """Measure both networks."""
    operator = resnet20_operator(None)
    large = [in_new_process(resnet18_row, *budget) for budget in LARGE_BUDGETS]
    small = resnet20_rows(operator)
    parts = [
        f"Number of threads: {torch.get_num_threads()}. Seed: {SEED}.",
        f"## ResNet-20 (272,474 parameters), trained, {NUM_IMAGES} images of CIFAR-10",
        f"The error is the largest abs ln(f/f_full) of the schedule (T = {TYPICAL_STEPS:,}, weight decay"
        f" {WEIGHT_DECAY:g}), where f_full comes from the longest run with all vectors. There is one seed and the error"
        " does not fall steadily with memory, so part of it is chance. The constants of the locking were tuned on two"
        " synthetic spectra, not on this network.",
        markdown_table(["vectors allowed", "products", "distinct nodes", "error of the schedule"], small),
        f"## ResNet-18 (11,173,962 parameters), untrained, {LARGE_BATCH} random images",
        "The growth of the peak memory is measured from the peak that the model and one product need.",
        markdown_table(
            ["vectors allowed", "products", "distinct nodes", "planned (MB)", "growth of the peak (MB)", "time (s)"],
            large,
        ),
    ]
    return ResultsPage("memory_modes", "What a memory budget costs", "\n\n".join(parts))


def resnet20_rows(operator: HessianOperator) -> list[list[str]]:
    """Rows of the table on accuracy: every budget, compared with the full basis of the longest run."""
    start = torch.randn(operator.dim, generator=torch.Generator().manual_seed(SEED))
    longest = max(steps for _, steps in SMALL_BUDGETS)
    full = lanczos(operator, start, longest, memory_budget=(longest + 2) * 4 * operator.dim)
    reference = _curve(full)
    rows = [_row("full", steps, full, reference) for steps in sorted({steps for _, steps in SMALL_BUDGETS})]
    for vectors, steps in SMALL_BUDGETS:
        run = lanczos(operator, start, steps, memory_budget=vectors * 4 * operator.dim)
        rows.append(_row(str(vectors), steps, run, reference))
    return rows


def _row(vectors: str, steps: int, run: LanczosRun, reference: Array) -> list[str]:
    part = shortened(run, steps, torch.float32)
    error = np.abs(_curve(part) - reference).max()
    return [vectors, f"{steps}", f"{part.num_distinct} ({part.num_distinct / steps:.0%})", f"{error:.3f}"]


def _curve(run: LanczosRun) -> Array:
    return Settling(WEIGHT_DECAY, TYPICAL_STEPS, torch.float32).curve(run.alphas, run.betas)


def resnet18_row(vectors: int, steps: int) -> list[str]:
    """A row of the table on memory: a ResNet-18 within ``vectors`` vectors, in this process."""
    model = build("resnet18", 10, seed=SEED)
    source = torch.Generator().manual_seed(SEED)
    batch = (torch.randn(LARGE_BATCH, 3, 32, 32, generator=source), torch.arange(LARGE_BATCH))
    operator = HessianOperator(model, F.cross_entropy, batch, check=False)
    start = torch.randn(operator.dim, generator=source)
    operator(start)  # so the peak includes a single product and its graph
    plan = plan_memory(operator.dim, steps, vectors * 4 * operator.dim)
    before, begun = _peak(), time.monotonic()
    run = lanczos(operator, start, steps, memory_budget=plan.budget_bytes)
    seconds, grown = time.monotonic() - begun, _peak() - before
    return [
        f"{vectors}", f"{steps}", f"{run.num_distinct} ({run.num_distinct / steps:.0%})",
        f"{plan.num_bytes / 1e6:.0f}", f"{grown / 1e6:.0f}", f"{seconds:.0f}",
    ]  # fmt: skip


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    make().write(Path("results"), made_by_line("python -m benchmarks.memory_modes"))
