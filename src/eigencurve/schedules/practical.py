"""Elastic Step Decay and Cosine-power, the paper's two simple relatives of Eigencurve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Decay, DecayToMinimum
from eigencurve.schedules.units import Steps, whole_steps

# A step this close to the start of the next interval, relative to the remaining steps, belongs to that interval.
EDGE_TOLERANCE = 1e-12


def half_cosine(fraction: Array) -> Array:
    r"""From 1 at fraction 0 to 0 at fraction 1: :math:`\tfrac12(1 + \cos\pi x) = \sin^2\tfrac\pi2(1 - x)`.

    The second form keeps its digits where the first one approaches 0.
    """
    return np.where(fraction <= 0.5, 0.5 * (1 + np.cos(np.pi * fraction)), np.sin(0.5 * np.pi * (1 - fraction)) ** 2)


@dataclass(frozen=True, eq=False)
class CosinePower(DecayToMinimum):
    """See :func:`cosine_power`."""

    kind: ClassVar[str] = "cosine_power"
    alpha: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle(alpha=_check.positive(self.kind, "alpha", self.alpha))

    def _weight(self, progress: Array) -> Array:
        return half_cosine(progress) ** self.alpha


def cosine_power(total_steps: Steps, lr: float, min_lr: float = 0.0, alpha: float = 0.5) -> CosinePower:
    r"""A power of cosine decay.

    .. math:: \eta_t = \eta_{\min} + (\eta_0 - \eta_{\min})\bigl[\tfrac12(1 + \cos\tfrac{\pi t}{T})\bigr]^\alpha

    α = 1 is cosine decay. With α below 1 the rate stays high for longer, which suits short runs.

    Reference: arXiv:2110.14109, Section 4.3 and Appendix "Cosine-power Scheduling".

    >>> round(cosine_power(100, lr=1.0, alpha=0.5)(50), 6)
    0.707107
    """
    return CosinePower(whole_steps("cosine_power", "total_steps", total_steps, minimum=1), lr, min_lr, alpha)


@dataclass(frozen=True, eq=False)
class ElasticStep(Decay):
    """See :func:`elastic_step`."""

    kind: ClassVar[str] = "elastic_step"
    r: float = 0.5

    def __post_init__(self) -> None:
        ratio = _check.real(self.kind, "r", self.r)
        if not 0 < ratio < 1:
            _check.refuse(self.kind, "r", "between 0 and 1, both excluded", ratio, "The paper uses 1/2 and 1/sqrt(2).")
        self._settle(r=ratio)

    def _rates(self, steps: IntArray) -> Array:
        return self.lr * 2.0 ** -self._piece(steps).astype(np.float64)

    def _piece(self, steps: IntArray) -> IntArray:
        left = (self.total_steps - steps) / self.total_steps
        return np.floor((np.log(left) - EDGE_TOLERANCE) / math.log(self.r)).astype(np.int64)


def elastic_step(total_steps: Steps, lr: float, r: float = 0.5) -> ElasticStep:
    r"""Elastic Step Decay: the rate is halved each time the number of remaining steps has shrunk by the factor r.

    .. math:: \eta_t = \eta_0 / 2^k \quad\text{if}\quad t \in \bigl[(1-r^k)T, (1-r^{k+1})T\bigr)

    Args:
        total_steps: Total number of steps T.
        lr: Initial rate.
        r: Ratio of the lengths of successive intervals, between 0 and 1. The paper searches 1/2 and 1/√2 for images
            and values up to 2^(-1/20) for language.

    Reference: arXiv:2110.14109, Section 4.3 and Appendix "ImageNet Classification with Elastic Step Decay".

    >>> elastic_step(8, lr=1.0, r=0.5).values()
    array([1.   , 1.   , 1.   , 1.   , 0.5  , 0.5  , 0.25 , 0.125])
    """
    return ElasticStep(whole_steps("elastic_step", "total_steps", total_steps, minimum=1), lr, r)
