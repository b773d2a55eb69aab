"""The one-cycle policy, as PyTorch's OneCycleLR computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.decays import half_cosine
from eigencurve.schedules.units import Steps, whole_steps

ANNEALS = ("cosine", "linear")


@dataclass(frozen=True, eq=False)
class OneCycle(Schedule):
    """See :func:`one_cycle`."""

    kind: ClassVar[str] = "one_cycle"
    pct_start: float = 0.3
    div_factor: float = 25.0
    final_div_factor: float = 1e4
    anneal: str = "cosine"
    three_phase: bool = False

    def __post_init__(self) -> None:
        share = _check.at_least(self.kind, "pct_start", self.pct_start, 0.0, "It is a fraction: 30 % is 0.3.")
        most = 0.5 if self.three_phase else 1.0
        if share > most:
            why = "The rise and the fall have the same length." if self.three_phase else "It is a fraction of the run."
            _check.refuse(self.kind, "pct_start", f"<= {most:g}", share, why)
        self._settle(
            pct_start=share,
            div_factor=_check.at_least(self.kind, "div_factor", self.div_factor, 1.0),
            final_div_factor=_check.at_least(self.kind, "final_div_factor", self.final_div_factor, 1.0),
            anneal=_check.choice(self.kind, "anneal", self.anneal, ANNEALS),
            three_phase=bool(self.three_phase),
        )

    def _knots(self) -> tuple[list[float], list[float]]:
        """The last step of each phase, not always whole, and the rates between which the phases run."""
        first = self.lr / self.div_factor
        peak = self.pct_start * self.total_steps - 1
        middle = [2 * self.pct_start * self.total_steps - 2] if self.three_phase else []
        rates = [first, self.lr, *([first] if self.three_phase else []), first / self.final_div_factor]
        return [peak, *middle, self.total_steps - 1], rates

    def _piece(self, steps: IntArray) -> IntArray:
        ends, _ = self._knots()
        return np.searchsorted(ends[:-1], steps, side="left")

    def _turns(self) -> IntArray:
        ends, _ = self._knots()
        return np.maximum(np.ceil(ends), 0).astype(np.int64)

    def _rates(self, steps: IntArray) -> Array:
        ends, rates = self._knots()
        starts = np.array([0.0, *ends[:-1]])
        phase = self._piece(steps)
        length = np.array(ends) - starts
        # A phase without length is already at its end.
        done = np.where(length[phase] > 0, (steps - starts[phase]) / np.where(length > 0, length, 1.0)[phase], 1.0)
        left = half_cosine(done) if self.anneal == "cosine" else 1 - done
        begin, end = np.array(rates)[phase], np.array(rates)[phase + 1]
        return np.asarray(left * begin + (1 - left) * end)


def one_cycle(
    total_steps: Steps,
    lr: float,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
    anneal: str = "cosine",
    three_phase: bool = False,
) -> OneCycle:
    r"""The one-cycle policy: from lr/25 up to ``lr`` and down to nearly zero, with PyTorch's names and values.

    The rates are those of ``torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=total_steps, …)``.
    Momentum is not cycled.

    Args:
        total_steps: Total number of steps T.
        lr: Peak rate, ``max_lr`` in PyTorch.
        pct_start: Fraction of the run in which the rate rises; the peak is at step pT - 1.
        div_factor: Ratio of the peak to the first rate.
        final_div_factor: Ratio of the first rate to the last.
        anneal: ``"cosine"`` or ``"linear"``, for all phases.
        three_phase: Whether to fall to the first rate as fast as the rise, and only then to the last rate.

    Reference: Smith and Topin, 2018, arXiv:1708.07120.

    >>> one_cycle(10, lr=1.0, anneal="linear").values().round(3)
    array([0.04 , 0.52 , 1.   , 0.857, 0.714, 0.571, 0.429, 0.286, 0.143,
           0.   ])
    """
    total = whole_steps("one_cycle", "total_steps", total_steps, minimum=1)
    return OneCycle(total, lr, pct_start, div_factor, final_div_factor, anneal, three_phase)
