"""Settings of a spectrum estimate, checked when they are made."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from eigencurve import _check
from eigencurve.schedules.units import TYPICAL_STEPS


@dataclass(frozen=True)
class EstimateSettings:
    """Settings of a Lanczos measurement; :func:`eigencurve.hessian.estimate_spectrum` documents each of them.

    The measurements from gradients (noise and start) use all but ``num_probes``, ``settle`` and ``total_steps``.

    Attributes:
        function: Name of the public function, for messages and checkpoints.

    Raises:
        TypeError: If a count is not an integer.
        ValueError: If a value is out of range, or the folder of ``checkpoint`` does not exist.
    """

    num_products: int = 250
    num_probes: int = 1
    seed: int = 0
    settle: float | None = 0.02
    weight_decay: float = 5e-4
    total_steps: int = TYPICAL_STEPS
    memory_budget: int | None = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: bool = True
    function: str = "estimate_spectrum"

    def __post_init__(self) -> None:
        for name, minimum in (("num_products", 1), ("num_probes", 1), ("seed", 0)):
            object.__setattr__(self, name, _check.whole(self.function, name, getattr(self, name), minimum))
        steps = _check.whole(self.function, "total_steps", self.total_steps, minimum=1, maximum=_check.MOST_STEPS)
        object.__setattr__(self, "total_steps", steps)
        if self.settle is not None:
            object.__setattr__(self, "settle", _check.positive(self.function, "settle", self.settle))
        decay = _check.positive(
            self.function, "weight_decay", self.weight_decay, "It also sets the resolution near zero."
        )
        object.__setattr__(self, "weight_decay", decay)
        if self.checkpoint is not None and not Path(self.checkpoint).parent.is_dir():
            _check.refuse(self.function, "checkpoint", "a path in a folder that exists", str(self.checkpoint))


def seed_of(seed: int, index: int) -> int:
    """The seed of one random vector, for torch's generator, which uses only the lowest 32 bits.

    >>> seed_of(2, 1)
    2000007
    """
    return ((seed * 1_000_003 + index) ^ (seed >> 32)) % 2**63
