"""Smooth decays that other libraries made common: polynomial, inverse square root, REX, and 1 - x^p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Decay, DecayToMinimum
from eigencurve.schedules.units import Steps, whole_steps

# The timescale of transformers' get_inverse_sqrt_schedule for a run without warmup.
USUAL_TIMESCALE = 10_000


@dataclass(frozen=True, eq=False)
class Polynomial(DecayToMinimum):
    """See :func:`polynomial`."""

    kind: ClassVar[str] = "polynomial"
    power: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle(power=_check.positive(self.kind, "power", self.power))

    def _weight(self, progress: Array) -> Array:
        return np.asarray((1 - progress) ** self.power)


def polynomial(total_steps: Steps, lr: float, min_lr: float = 0.0, power: float = 1.0) -> Polynomial:
    r"""Polynomial decay.

    .. math:: \eta_t = \eta_{\min} + (\eta_0 - \eta_{\min})(1 - t/T)^p

    With ``min_lr=0`` it is PyTorch's ``PolynomialLR``. p = 1 is :func:`linear`.

    Args:
        total_steps: Total number of steps T.
        lr: Initial rate.
        min_lr: Rate that the curve would reach at step T.
        power: Exponent p > 0. Below 1 the rate stays high for longer; above 1 it decays early.

    >>> polynomial(4, lr=1.0, power=2.0).values()
    array([1.    , 0.5625, 0.25  , 0.0625])
    """
    return Polynomial(whole_steps("polynomial", "total_steps", total_steps, minimum=1), lr, min_lr, power)


@dataclass(frozen=True, eq=False)
class OneMinusPower(DecayToMinimum):
    """See :func:`one_minus_power`."""

    kind: ClassVar[str] = "one_minus_power"
    power: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle(power=_check.positive(self.kind, "power", self.power))

    def _weight(self, progress: Array) -> Array:
        return np.asarray(1 - progress**self.power)


def one_minus_power(total_steps: Steps, lr: float, min_lr: float = 0.0, power: float = 0.5) -> OneMinusPower:
    r"""The decay that :func:`wsd` and :func:`cooldown` call ``"1-sqrt"`` (p = ½) and ``"1-square"`` (p = 2).

    .. math:: \eta_t = \eta_{\min} + (\eta_0 - \eta_{\min})\bigl(1 - (t/T)^p\bigr)

    Reference: Hägele et al., 2024, arXiv:2405.18392, Section 3, who find 1-sqrt the best cooldown of a language model.

    >>> one_minus_power(4, lr=1.0).values()
    array([1.        , 0.5       , 0.29289322, 0.1339746 ])
    """
    return OneMinusPower(whole_steps("one_minus_power", "total_steps", total_steps, minimum=1), lr, min_lr, power)


@dataclass(frozen=True, eq=False)
class Rex(DecayToMinimum):
    """See :func:`rex`."""

    kind: ClassVar[str] = "rex"

    def _weight(self, progress: Array) -> Array:
        return np.asarray((1 - progress) / (0.5 + 0.5 * (1 - progress)))


def rex(total_steps: Steps, lr: float, min_lr: float = 0.0) -> Rex:
    r"""REX, the "reflected exponential": high for most of the run, then a steep fall.

    .. math:: \eta_t = \eta_{\min} + (\eta_0 - \eta_{\min})\,\frac{1 - t/T}{\frac12 + \frac12(1 - t/T)}

    Reference: Chen et al., 2021, arXiv:2107.04197, Section 3.

    >>> rex(4, lr=1.0).values()
    array([1.        , 0.85714286, 0.66666667, 0.4       ])
    """
    return Rex(whole_steps("rex", "total_steps", total_steps, minimum=1), lr, min_lr)


@dataclass(frozen=True, eq=False)
class InverseSqrt(Decay):
    """See :func:`inverse_sqrt`."""

    kind: ClassVar[str] = "inverse_sqrt"
    timescale: int = USUAL_TIMESCALE

    def __post_init__(self) -> None:
        self._settle(timescale=_check.whole(self.kind, "timescale", self.timescale, minimum=1))

    def _rates(self, steps: IntArray) -> Array:
        return np.asarray(self.lr / np.sqrt(1 + steps / self.timescale))


def inverse_sqrt(total_steps: Steps, lr: float, timescale: Steps = USUAL_TIMESCALE) -> InverseSqrt:
    r"""Inverse square root decay, which has no end: the rates do not depend on T.

    .. math:: \eta_t = \frac{\eta_0}{\sqrt{1 + t/\tau}}

    After a warmup of n steps with τ = n it is the schedule of the first Transformer, :math:`\eta_0\sqrt{n/(t + n)}`:
    ``warmup(inverse_sqrt(T - n, lr, timescale=n), n)``.

    Args:
        total_steps: Total number of steps T.
        lr: Initial rate, or the peak after a warmup.
        timescale: Number of steps τ after which the rate has fallen to lr/√2. The default is that of transformers.

    Reference: Vaswani et al., 2017, arXiv:1706.03762, Eq. (3); Zhai et al., 2022, arXiv:2106.04560, Section 3.5.

    >>> inverse_sqrt(100, lr=1.0, timescale=10)(30)
    0.5
    """
    total = whole_steps("inverse_sqrt", "total_steps", total_steps, minimum=1)
    return InverseSqrt(total, lr, whole_steps("inverse_sqrt", "timescale", timescale, 1, total))
