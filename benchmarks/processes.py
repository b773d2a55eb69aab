"""Memory of an estimate that is distributed over processes: ``python -m benchmarks.processes``."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from benchmarks.memory_modes import peak_bytes, reset_peak
from torch.multiprocessing.spawn import spawn

from eigencurve.hessian import DistributedOperator, HessianOperator, ShardedHessianOperator, estimate_spectrum
from paper.arrays import Array
from paper.models.making import drawn_from
from paper.models.transformer import Transformer, next_byte_loss
from paper.page import ResultsPage, made_by_line, markdown_table
from paper.training.loop import free_the_group

SEED = 0
NUM_STEPS = 10
NUM_TOKENS = 64
# As many rows of text for any number of processes, so that they all measure the same matrix.
NUM_ROWS = 4
SIZE = (4096, 320, 3, 5)
PROCESSES = (1, 2, 4)
OPERATORS = ("DistributedOperator", "ShardedHessianOperator")
COLUMNS = (
    "operator", "processes", "vectors (MB)", "growth (MB)", "memory before (MB)", "error of a product",
    "error of α, β",
)  # fmt: skip


@dataclass(frozen=True)
class ProcessResult:
    """What an estimate took in the process that needs most."""

    operator: str  # name of the operator
    num_processes: int  # number of processes
    dim: int  # number of parameters
    vector_bytes: int  # size of all vectors of the run in one process
    growth_bytes: int  # peak memory during the run, minus the memory before
    before_bytes: int  # memory before the run
    product_error: float  # error of a product that a ShardedHessianOperator reports; 0 for exact products
    # Largest difference of α and β from those of exact products in one process, relative to the largest |α|.
    error: float


def make() -> ResultsPage:
    """Measure both operators in 1, 2 and 4 processes."""
    results = [result for count in PROCESSES for result in measure_processes(count)]
    results.sort(key=lambda result: (OPERATORS.index(result.operator), result.num_processes))
    parts = [
        f"A transformer of {results[0].dim:,} parameters with random weights (seed {SEED}), float32, {NUM_ROWS} rows of"
        f" {NUM_TOKENS} random tokens, {NUM_STEPS} Lanczos steps with the whole basis, processes of one thread each on"
        " one machine, with gloo. Each number is the largest of all processes.",
        "`DistributedOperator(shard_vectors=True)` has the whole model and, during a product, whole vectors in each"
        " process. `ShardedHessianOperator` measures a model that `fully_shard` has distributed, by finite differences."
        " The vectors are those of the run. The growth is the peak during the run minus the memory before it, and also"
        " contains the gradients, the gathered layers and the buffers of gloo.",
        markdown_table(COLUMNS, [_row(result) for result in results]),
        "The error of a product is the one that the operator reports. The error of α, β is the largest difference from"
        " those of exact products in one process, divided by the largest |α|.",
    ]
    return ResultsPage("processes", "Memory of an estimate over several processes", "\n\n".join(parts))


def _row(result: ProcessResult) -> list[str]:
    return [
        f"`{result.operator}`", f"{result.num_processes}", f"{result.vector_bytes / 1e6:.0f}",
        f"{result.growth_bytes / 1e6:.0f}", f"{result.before_bytes / 1e6:.0f}",
        f"{result.product_error:.1e}" if result.product_error else "exact", f"{result.error:.1e}",
    ]  # fmt: skip


def measure_processes(count: int) -> list[ProcessResult]:
    """Run both operators in ``count`` processes."""
    exact = _numbers(HessianOperator(_model(), next_byte_loss, _rows(0, 1), check=False))
    results = []
    for name in OPERATORS:
        with tempfile.TemporaryDirectory() as folder:
            spawn(_measure, (name, count, folder), count)  # type: ignore[no-untyped-call]
            found: list[dict[str, Any]] = [
                torch.load(Path(folder) / f"{rank}.pt", weights_only=True) for rank in range(count)
            ]
        numbers = np.asarray(found[0]["numbers"])
        error = float(np.abs(numbers - exact).max() / np.abs(exact[0]).max())
        vectors, growth, before = (max(int(each[key]) for each in found) for key in ("vectors", "growth", "before"))
        reported = float(found[0]["product_error"])
        results.append(ProcessResult(name, count, int(found[0]["dim"]), vectors, growth, before, reported, error))
    return results


def _measure(rank: int, name: str, count: int, folder: str) -> None:
    """Run one estimate in process ``rank``, and write what it took."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=count)
    torch.save(_measured(rank, count, name), Path(folder) / f"{rank}.pt")
    free_the_group()
    dist.destroy_process_group()


def _measured(rank: int, count: int, name: str) -> dict[str, Any]:
    """Memory and numbers of this process."""
    model, batch = _model(), _rows(rank, count)
    operator: Any
    if name == "DistributedOperator":
        whole = HessianOperator(model, next_byte_loss, batch, check=False)
        operator = DistributedOperator(whole, shard_vectors=True)
    else:
        operator = ShardedHessianOperator(_distributed(model), next_byte_loss, batch)
    operator(operator.space.normal(torch.Generator().manual_seed(SEED), operator.dtype))
    before = reset_peak()
    found = estimate_spectrum(operator, NUM_STEPS, settle=None, progress=False, memory_budget=10**10)
    growth = peak_bytes() - before
    numbers = [found.alphas[0].tolist(), found.betas[0].tolist()]
    result = {"dim": operator.dim, "vectors": found.plan.num_bytes, "growth": growth, "before": before}
    result["product_error"] = getattr(operator, "product_error", None) or 0.0
    return {**result, "numbers": numbers}


def _numbers(operator: HessianOperator) -> Array:
    """α and β of one process."""
    found = estimate_spectrum(operator, NUM_STEPS, settle=None, progress=False, memory_budget=10**10)
    return np.array([found.alphas[0], found.betas[0]])


def _model() -> Transformer:
    with drawn_from(SEED):
        return Transformer(*SIZE, context=NUM_TOKENS, tied=True)


def _distributed(model: Transformer) -> Transformer:
    from torch.distributed.fsdp import fully_shard  # imports the compiler, which takes seconds

    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    return model


def _rows(rank: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of text of one process."""
    shape = (NUM_ROWS, NUM_TOKENS + 1)
    text = torch.randint(0, SIZE[0], shape, generator=torch.Generator().manual_seed(SEED))[rank::count]
    return text[:, :-1], text[:, 1:]


if __name__ == "__main__":
    make().write(Path("results"), made_by_line("python -m benchmarks.processes"))
