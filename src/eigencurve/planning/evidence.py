"""Published evidence about schedules, for runs of which nothing is measured."""

from __future__ import annotations

from dataclasses import dataclass

from eigencurve.schedules.base import Schedule
from eigencurve.schedules.decays import constant, cosine
from eigencurve.schedules.wsd import wsd

SOURCE = "a 124M Llama under AdamW, 50,000 steps, peak rates 0.0005 and 0.001 (arXiv:2501.18965)"
# Final losses of these runs relative to a cosine to zero, minus 1: at the peak rate 0.001 and at 0.0005.
RELATIVE_LOSSES = {
    "WSD, last 40 %": (-0.0028, -0.0056),
    "WSD, last 60 %": (-0.0036, -0.0053),
    "WSD, last 90 %": (-0.0016, -0.0019),
    "WSD, last 20 %": (0.0011, -0.0031),
    "cosine to 0": (0.0, 0.0),
    "cosine to 10 %": (0.0066, 0.0022),
    "constant": (0.0602, 0.0431),
}
# Lengths of the decays of these runs, in percent.
TAILS = (40, 60, 90, 20)
RECOMMENDED = "WSD, last 40 %"
# Halving the peak rate raised the final loss of these runs by this fraction.
HALF_RATE = (0.001, 0.007)


@dataclass(frozen=True)
class UsualRate:
    """A common peak rate of an optimizer, and the range around it that people use."""

    best: float
    low: float
    high: float


USUAL_RATES = {
    "adam": UsualRate(5e-4, 1e-4, 2e-3),
    "adamw": UsualRate(5e-4, 1e-4, 2e-3),
    "sgd": UsualRate(0.1, 0.01, 0.5),
}


def evidence_schedules(total_steps: int, lr: float) -> dict[str, Schedule]:
    """The schedules of ``RELATIVE_LOSSES`` for a run of T steps, without its warmup."""
    tails = {f"WSD, last {share} %": wsd(total_steps, lr, max(total_steps * share // 100, 1)) for share in TAILS}
    return {
        **tails,
        "cosine to 0": cosine(total_steps, lr),
        "cosine to 10 %": cosine(total_steps, lr, 0.1 * lr),
        "constant": constant(total_steps, lr),
    }


def usual_rate(optimizer: str, max_lr: float | None = None) -> UsualRate:
    """The common peak rate of an optimizer and its range, at most ``max_lr``.

    >>> usual_rate("adamw", max_lr=3e-4)
    UsualRate(best=0.0003, low=0.0001, high=0.0003)
    """
    usual = USUAL_RATES[optimizer]
    return usual if max_lr is None else UsualRate(*(min(rate, max_lr) for rate in (usual.best, usual.low, usual.high)))


def usual_warmup(total_steps: int, optimizer: str) -> int:
    """A warmup of 2 % of the run, at most 2,000 steps, for Adam; none for SGD."""
    return min(total_steps // 50, 2000) if optimizer != "sgd" else 0
