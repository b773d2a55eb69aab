"""Weights drawn from a seed, with PyTorch's own random state left as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from eigencurve import _check


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """What is drawn on the CPU while the block lasts comes from ``seed`` alone; after it, all is as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_check.whole("build", "seed", seed, minimum=0))
        yield
