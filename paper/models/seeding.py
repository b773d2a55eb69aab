"""Weights drawn from a seed, without changing PyTorch's global random state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from paper import checks


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Seed PyTorch's CPU generator inside the block, and restore its state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(checks.whole("build", "seed", seed, minimum=0))
        yield
