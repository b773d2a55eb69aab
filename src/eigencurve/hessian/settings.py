"""Settings of a spectrum estimate, checked when they are made."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from eigencurve import _check
from eigencurve.schedules.units import TYPICAL_STEPS

FUNCTION = "estimate_spectrum"


class EstimateOptions(TypedDict, total=False):
    """Options that other functions pass on to the estimate; :class:`EstimateSettings` holds their defaults."""

    num_steps: int
    num_probes: int
    seed: int
    settle: float | None
    memory_budget: int | None
    checkpoint: str | os.PathLike[str] | None
    progress: bool


@dataclass(frozen=True)
class EstimateSettings:
    """All settings of :func:`eigencurve.hessian.estimate_spectrum`, which documents each of them.

    Raises:
        TypeError: If a count is not an integer.
        ValueError: If a value is out of range, or the folder of ``checkpoint`` does not exist.
    """

    num_steps: int = 250
    num_probes: int = 1
    seed: int = 0
    settle: float | None = 0.02
    weight_decay: float = 5e-4
    total_steps: int = TYPICAL_STEPS
    memory_budget: int | None = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        for name, minimum in (("num_steps", 1), ("num_probes", 1), ("seed", 0)):
            object.__setattr__(self, name, _check.whole(FUNCTION, name, getattr(self, name), minimum))
        steps = _check.whole(FUNCTION, "total_steps", self.total_steps, minimum=1, maximum=_check.MOST_STEPS)
        object.__setattr__(self, "total_steps", steps)
        if self.settle is not None:
            object.__setattr__(self, "settle", _check.positive(FUNCTION, "settle", self.settle))
        decay = _check.positive(FUNCTION, "weight_decay", self.weight_decay, "It also sets the resolution near zero.")
        object.__setattr__(self, "weight_decay", decay)
        if self.checkpoint is not None and not Path(self.checkpoint).parent.is_dir():
            _check.refuse(FUNCTION, "checkpoint", "a path in a folder that exists", str(self.checkpoint))


def seed_of(seed: int, index: int) -> int:
    """The seed of one random vector, for torch's generator, which uses only the lowest 32 bits.

    >>> seed_of(2, 1)
    2000007
    """
    return ((seed * 1_000_003 + index) ^ (seed >> 32)) % 2**63
