"""Memory plan of a Lanczos run: how many vectors it keeps, decided before it starts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from eigencurve import _check
from eigencurve._moved import renamed, renamed_attribute

# In addition to the rows of the basis: the product, and its parts before they are joined.
WORK_VECTORS = 2
# The recurrence needs its last two vectors.
MIN_ROWS = 2
# Without a budget, a run may use one part in this many of the free memory.
FREE_PARTS = 4


@dataclass(frozen=True)
class MemoryPlan:
    """Vectors that a Lanczos run keeps in memory; ``print`` shows a one-line summary.

    Attributes:
        num_products: Maximum number of steps, of one product each.
        num_rows: Number of basis vectors kept at a time. If it equals ``num_products``, the whole basis is kept and
            every product yields a node of the quadrature. If it is smaller, converged Ritz vectors replace the basis
            after ``num_rows`` steps.
        vector_bytes: Size in bytes of one vector with as many numbers as there are parameters.
        budget_bytes: Upper limit in bytes for all vectors.
        device: Device of the rows.
    """

    num_products: int
    num_rows: int
    vector_bytes: int
    budget_bytes: int
    device: torch.device

    num_steps = renamed_attribute("num_steps", "num_products")

    @property
    def mode(self) -> str:
        """``"full"`` if the whole basis is kept, otherwise ``"locked"``."""
        return "full" if self.num_rows >= self.num_products else "locked"

    @property
    def num_bytes(self) -> int:
        """Size in bytes of all vectors of the run, without the model's own graph."""
        return (self.num_rows + WORK_VECTORS) * self.vector_bytes

    def __str__(self) -> str:
        kept = "the whole basis" if self.mode == "full" else "converged Ritz vectors and the last steps"
        return (
            f"{self.num_products} steps, keeping {kept}: {self.num_rows + WORK_VECTORS} vectors of "
            f"{_size(self.vector_bytes)}, {_size(self.num_bytes)} of the allowed {_size(self.budget_bytes)}"
        )


@renamed(num_steps="num_products")
def plan_memory(
    dim: int,
    num_products: int,
    memory_budget: int | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
) -> MemoryPlan:
    """Plan a Lanczos run that keeps as much of the basis as the budget allows, before it starts.

    Args:
        dim: Number of parameters.
        num_products: Maximum number of Lanczos steps.
        memory_budget: Upper limit in bytes for all vectors of the run. None allows a quarter of the free memory of the
            model's device, or of the host if it has room for more of the basis.
        dtype: Floating-point type of the parameters.
        device: Device of the parameters; None is the CPU.

    Raises:
        ValueError: If the budget is below the four vectors that the recurrence needs.

    >>> plan_memory(dim=1000, num_products=150, memory_budget=40 * 4000).num_rows
    38
    >>> print(plan_memory(dim=1000, num_products=20, memory_budget=40 * 4000))
    20 steps, keeping the whole basis: 22 vectors of 4.0 kB, 88.0 kB of the allowed 160.0 kB
    """
    size, host = dim * dtype.itemsize, torch.device("cpu")
    here = host if device is None else device
    if memory_budget is not None:
        budget = _check.whole("plan_memory", "memory_budget", memory_budget, minimum=0)
        free = free_bytes(here)
        return _plan(num_products, size, budget, here if here == host or budget <= free else host)
    plan = _plan(num_products, size, free_bytes(here) // FREE_PARTS, here, strict=here == host)
    if plan.mode == "full" or here == host:
        return plan
    other = _plan(num_products, size, free_bytes(host) // FREE_PARTS, host)
    return other if other.num_rows > plan.num_rows else plan


def free_bytes(device: torch.device) -> int:
    """Free memory of ``device`` in bytes; on the host, within the limit of its control group."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return min(free, _group_limit(free))


def _group_limit(otherwise: int) -> int:
    """Free memory within the limit of the control group, or ``otherwise`` if there is none."""
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no control groups, or "max"
        return otherwise
    return max(limit - used, 0)


def _plan(num_products: int, size: int, budget: int, device: torch.device, strict: bool = True) -> MemoryPlan:
    rows = min(num_products, budget // size - WORK_VECTORS)
    if strict and rows < min(MIN_ROWS, num_products):
        need = (MIN_ROWS + WORK_VECTORS) * size
        remedy = f"Lanczos needs at least {MIN_ROWS + WORK_VECTORS} vectors of {_size(size)}."
        _check.refuse("plan_memory", "memory_budget", f">= {need}", budget, remedy)
    return MemoryPlan(num_products, rows, size, budget, device)


def _size(num_bytes: int) -> str:
    value, unit = float(num_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}"
