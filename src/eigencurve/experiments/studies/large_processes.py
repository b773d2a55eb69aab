"""Memory of an estimate whose vectors are distributed over processes of this machine."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

from eigencurve._arrays import Array
from eigencurve.experiments.models.seeding import drawn_from
from eigencurve.experiments.models.transformer import Transformer, next_byte_loss
from eigencurve.hessian.distributed import DistributedOperator
from eigencurve.hessian.estimate import estimate_spectrum
from eigencurve.hessian.operator import HessianOperator
from eigencurve.hessian.sharded import ShardedHessianOperator

SEED = 0
NUM_STEPS = 10
NUM_TOKENS = 64
# As many rows of text for any number of processes, so that they all measure the same matrix.
NUM_ROWS = 4
SIZE = (4096, 320, 3, 5)
OPERATORS = ("DistributedOperator", "ShardedHessianOperator")


@dataclass(frozen=True)
class ProcessResult:
    """What an estimate took in the process that needs most.

    Attributes:
        operator: Name of the operator.
        num_processes: Number of processes.
        dim: Number of parameters.
        vector_bytes: Size of all vectors of the run in one process.
        growth_bytes: Growth of the peak memory during the run.
        peak_bytes: Peak memory.
        error: Largest difference of α and β from those of exact products in one process, relative to the largest |α|.
    """

    operator: str
    num_processes: int
    dim: int
    vector_bytes: int
    growth_bytes: int
    peak_bytes: int
    error: float


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
        vectors, growth, peak = (max(int(each[key]) for each in found) for key in ("vectors", "growth", "peak"))
        results.append(ProcessResult(name, count, int(found[0]["dim"]), vectors, growth, peak, error))
    return results


def _measure(rank: int, name: str, count: int, folder: str) -> None:
    """Run one estimate in process ``rank``, and write what it took."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=count)
    model, batch = _model(), _rows(rank, count)
    operator: Any
    if name == "DistributedOperator":
        whole = HessianOperator(model, next_byte_loss, batch, check=False)
        operator = DistributedOperator(whole, shard_vectors=True)
    else:
        operator = ShardedHessianOperator(_distributed(model), next_byte_loss, batch)
    operator(operator.space.normal(torch.Generator().manual_seed(SEED), operator.dtype))
    before = peak_bytes()
    found = estimate_spectrum(operator, NUM_STEPS, settle=None, progress=False, memory_budget=10**10)
    peak = peak_bytes()
    numbers = [found.alphas[0].tolist(), found.betas[0].tolist()]
    result = {"dim": operator.dim, "vectors": found.plan.num_bytes, "growth": peak - before, "peak": peak}
    torch.save({**result, "numbers": numbers}, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


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


def peak_bytes() -> int:
    """Peak memory of this process, without that of the process that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
