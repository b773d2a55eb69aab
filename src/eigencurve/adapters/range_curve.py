"""The result of a learning-rate range test, and what it suggests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, frozen

# Width of the smoothing kernel, as a fraction of the number of steps, and at least this many steps.
WIDTH, FEWEST = 0.03, 2.0
# Training has diverged if the loss is this many times its lowest value.
RISE = 4.0
# The usual rule of thumb: a tenth of the rate at which training diverges.
SAFETY = 10.0


@dataclass(frozen=True, eq=False, repr=False)
class RangeTest:
    """Losses at increasing learning rates, one step each.

    Attributes:
        rates: Learning rate of each step; the rate of the first parameter group if there are several.
        losses: Loss of the batch of each step, before the step. The last one may be infinite or NaN.
        stopped: Whether the test ended before its last rate, because the loss rose.
    """

    rates: Array
    losses: Array
    stopped: bool = False

    def __post_init__(self) -> None:
        rates = _check.vector("RangeTest", "rates", self.rates)
        losses = np.asarray(self.losses, dtype=np.float64)
        if losses.shape != rates.shape or (np.diff(rates) <= 0).any() or rates[0] <= 0:
            need = "increasing rates > 0 with one loss each"
            _check.refuse("RangeTest", "rates", need, f"{len(rates)} rates, {losses.size} losses")
        object.__setattr__(self, "rates", frozen(rates))
        object.__setattr__(self, "losses", frozen(losses))

    @property
    def smoothed(self) -> Array:
        """The finite losses, averaged with a Gaussian kernel over neighbouring steps."""
        finite = np.isfinite(self.losses)
        losses = self.losses[: len(finite) if finite.all() else int(np.argmin(finite))]
        places = np.arange(len(losses))
        kernel = np.exp(-0.5 * ((places[:, None] - places) / max(WIDTH * len(self.rates), FEWEST)) ** 2)
        return np.asarray(kernel @ losses / kernel.sum(axis=1))

    @property
    def noise(self) -> float:
        """The standard deviation of the losses around the smoothed ones, estimated from their median."""
        smoothed = self.smoothed
        return float(1.4826 * np.median(np.abs(self.losses[: len(smoothed)] - smoothed))) if len(smoothed) else 0.0

    @property
    def steepest(self) -> float | None:
        """The rate at which the smoothed loss falls fastest over ln(rate); None if it falls by less than the noise."""
        smoothed = self.smoothed
        if len(smoothed) < 2 or smoothed[0] - smoothed.min() <= self.noise:
            return None
        falling = np.gradient(smoothed, np.log(self.rates[: len(smoothed)]))[: int(np.argmin(smoothed)) + 1]
        return float(self.rates[int(np.argmin(falling))])

    @property
    def diverged_at(self) -> float | None:
        """The first rate after the minimum at which the loss has risen; None if it does not rise.

        The smoothed loss has risen if it is above the initial one, or four times the lowest, by more than three times
        the noise. If it is not but the test was stopped, or the loss is infinite, it is the last rate.
        """
        smoothed = self.smoothed
        if len(smoothed):
            lowest = int(np.argmin(smoothed))
            limit = min(smoothed[0], RISE * smoothed[lowest]) + 3 * self.noise
            above = np.flatnonzero(smoothed[lowest:] > limit)
            if len(above):
                return float(self.rates[lowest + above[0]])
        if len(smoothed) < len(self.rates):
            return float(self.rates[len(smoothed)])
        return float(self.rates[-1]) if self.stopped else None

    @property
    def tenth(self) -> float | None:
        """A tenth of the rate at which training diverges; None if it did not diverge."""
        return None if self.diverged_at is None else self.diverged_at / SAFETY

    @property
    def suggestion(self) -> float | None:
        """The smaller one of ``steepest`` and ``tenth``; None if neither is known."""
        known = [rate for rate in (self.steepest, self.tenth) if rate is not None]
        return min(known) if known else None

    def __repr__(self) -> str:
        lines = [
            f"RangeTest({len(self.rates)} steps, rates {self.rates[0]:.3g} to {self.rates[-1]:.3g})",
            f"  steepest descent of the loss   {_shown(self.steepest)}",
            f"  divergence                     {_shown(self.diverged_at)}",
            f"  a tenth of the divergence      {_shown(self.tenth)}",
            f"  suggested rate                 {_shown(self.suggestion)}",
        ]
        return "\n".join(lines)


def _shown(rate: float | None) -> str:
    return "not found" if rate is None else f"{rate:.3g}"
