"""Weights drawn from a seed, and narrow networks, whose widths are all divided by the same number."""

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


def divided(function: str, widths: tuple[int, ...], divisor: int) -> tuple[int, ...]:
    """Each width // divisor, as in the paper (arXiv:2110.14109, "Settings for Eigencurve").

    Raises:
        ValueError: A width would be zero.

    >>> divided("vgg16", (64, 512), 8)
    (8, 64)
    """
    if min(widths) < checks.whole(function, "divisor", divisor, minimum=1):
        checks.refuse(function, "divisor", f"<= {min(widths)}, the smallest width", divisor)
    return tuple(width // divisor for width in widths)
