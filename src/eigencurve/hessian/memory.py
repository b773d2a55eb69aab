"""How many vectors a Lanczos run may hold, decided and said before it begins."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from eigencurve import _check

# Beside the rows of the basis: the product, and its parts before they are put together.
WORK_VECTORS = 2
# The recurrence itself needs its last two vectors.
MIN_ROWS = 2
FREE_SHARE = 4


@dataclass(frozen=True)
class MemoryPlan:
    """What a Lanczos run of ``num_steps`` will hold; ``print`` says it in a sentence.

    Attributes:
        num_steps: the most steps.
        num_rows: basis vectors kept at a time. As many as steps: the whole basis, and every product buys a node of
            the quadrature. Fewer: after ``num_rows`` steps the best converged Ritz vectors take the basis's place.
        vector_bytes: of one vector of the size of the parameters.
        budget_bytes: what was allowed.
        device: where the rows are.
    """

    num_steps: int
    num_rows: int
    vector_bytes: int
    budget_bytes: int
    device: torch.device

    @property
    def mode(self) -> str:
        """``"full"`` or ``"locked"``."""
        return "full" if self.num_rows >= self.num_steps else "locked"

    @property
    def num_bytes(self) -> int:
        """All vectors of the run together. The model's own graph, which no step adds to, is not in it."""
        return (self.num_rows + WORK_VECTORS) * self.vector_bytes

    def __str__(self) -> str:
        kept = "the whole basis" if self.mode == "full" else "the converged Ritz vectors and the last steps"
        return (
            f"{self.num_steps} steps with {kept}: {self.num_rows + WORK_VECTORS} vectors of "
            f"{_size(self.vector_bytes)}, {_size(self.num_bytes)} of {_size(self.budget_bytes)} allowed"
        )


def plan_memory(
    dim: int,
    num_steps: int,
    memory_budget: int | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
) -> MemoryPlan:
    """The most of the basis that fits.

    Args:
        dim: the number of parameters.
        num_steps: of Lanczos.
        memory_budget: bytes for all vectors of the run; None allows a quarter of what is free, on the model's
            device or, where the whole basis does not fit there, on the host if more fits here.
        dtype: of the parameters.
        device: of the parameters; None is the host.

    Raises:
        ValueError: a budget below the four vectors that the recurrence needs.

    >>> plan_memory(dim=1000, num_steps=150, memory_budget=40 * 4000).num_rows
    38
    >>> print(plan_memory(dim=1000, num_steps=20, memory_budget=40 * 4000))
    20 steps with the whole basis: 22 vectors of 4.0 kB, 88.0 kB of 160.0 kB allowed
    """
    size = dim * torch.empty((), dtype=dtype).element_size()
    here = torch.device("cpu") if device is None else device
    host = torch.device("cpu")
    if memory_budget is not None:
        budget = _check.whole("plan_memory", "memory_budget", memory_budget, minimum=0)
        free = free_bytes(here)
        return _plan(num_steps, size, budget, here if here == host or budget <= free else host)
    plan = _plan(num_steps, size, free_bytes(here) // FREE_SHARE, here, strict=here == host)
    if plan.mode == "full" or here == host:
        return plan
    other = _plan(num_steps, size, free_bytes(host) // FREE_SHARE, host)
    return other if other.num_rows > plan.num_rows else plan


def free_bytes(device: torch.device) -> int:
    """Memory that is free now on ``device``; on the host, also within the limit that its control group sets."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return min(free, _group_limit(free))


def _group_limit(otherwise: int) -> int:
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no control groups, or "max"
        return otherwise
    return max(limit - used, 0)


def _plan(num_steps: int, size: int, budget: int, device: torch.device, strict: bool = True) -> MemoryPlan:
    rows = min(num_steps, budget // size - WORK_VECTORS)
    if strict and rows < min(MIN_ROWS, num_steps):
        need = (MIN_ROWS + WORK_VECTORS) * size
        remedy = f"Lanczos needs {MIN_ROWS + WORK_VECTORS} vectors of {_size(size)} at least."
        _check.refuse("plan_memory", "memory_budget", f">= {need}", budget, remedy)
    return MemoryPlan(num_steps, rows, size, budget, device)


def _size(num_bytes: int) -> str:
    value, unit = float(num_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}"
