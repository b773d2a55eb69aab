"""Smooth decays: the baselines of the paper, and those that other libraries made common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Decay, Schedule, between
from eigencurve.schedules.units import Steps, whole_steps

# The timescale of transformers' get_inverse_sqrt_schedule for a run without warmup.
USUAL_TIMESCALE = 10_000


@dataclass(frozen=True, eq=False)
class Constant(Decay):
    """See :func:`constant`."""

    kind: ClassVar[str] = "constant"

    def _rates(self, steps: IntArray) -> Array:
        return np.full(steps.shape, self.lr)


def constant(total_steps: Steps, lr: float) -> Constant:
    r"""The same learning rate at every step, :math:`\eta_t = \eta_0`.

    >>> constant(100, lr=0.1)(99)
    0.1
    """
    return Constant(whole_steps("constant", "total_steps", total_steps, minimum=1), lr)


@dataclass(frozen=True, eq=False)
class DecayToMinimum(Decay):
    """A schedule that decays from ``lr`` at t = 0 to ``min_lr`` at t = T, along a curve that the subclass defines."""

    min_lr: float = 0.0

    def __post_init__(self) -> None:
        self._settle(min_lr=_check.last_rate(self.kind, self.min_lr, _check.positive(self.kind, "lr", self.lr)))

    @abstractmethod
    def _weight(self, progress: Array) -> Array:
        """The curve from 1 to 0 as a function of t/T."""

    def _rates(self, steps: IntArray) -> Array:
        return between(self._weight(steps / self.total_steps), self.lr, self.min_lr)


def half_cosine(fraction: Array) -> Array:
    r"""From 1 at fraction 0 to 0 at fraction 1: :math:`\tfrac12(1 + \cos\pi x) = \sin^2\tfrac\pi2(1 - x)`.

    The second form keeps its digits where the first one approaches 0.
    """
    return np.where(fraction <= 0.5, 0.5 * (1 + np.cos(np.pi * fraction)), np.sin(0.5 * np.pi * (1 - fraction)) ** 2)


@dataclass(frozen=True, eq=False)
class Cosine(DecayToMinimum):
    """See :func:`cosine`."""

    kind: ClassVar[str] = "cosine"

    def _weight(self, progress: Array) -> Array:
        return half_cosine(progress)


def cosine(total_steps: Steps, lr: float, min_lr: float = 0.0) -> Cosine:
    r"""Cosine decay without restarts.

    .. math:: \eta_t = \eta_{\min} + \tfrac12(\eta_0 - \eta_{\min})\bigl(1 + \cos\tfrac{\pi t}{T}\bigr)

    The formula uses t/T, so the last step's rate is a little above ``min_lr``.

    Reference: Loshchilov and Hutter, 2017, arXiv:1608.03983; the paper's Table "Hyperparameter search".

    >>> cosine(100, lr=0.1)(50)
    0.05
    """
    return Cosine(whole_steps("cosine", "total_steps", total_steps, minimum=1), lr, min_lr)


@dataclass(frozen=True, eq=False)
class Linear(DecayToMinimum):
    """See :func:`linear`."""

    kind: ClassVar[str] = "linear"

    def _weight(self, progress: Array) -> Array:
        return 1 - progress


def linear(total_steps: Steps, lr: float, min_lr: float = 0.0) -> Linear:
    r"""Linear decay.

    .. math:: \eta_t = \eta_{\min} + (\eta_0 - \eta_{\min})(1 - t/T)

    Reference: Defazio et al., 2023, arXiv:2310.07831, who show that it is optimal in the worst case.

    >>> linear(4, lr=1.0).values()
    array([1.  , 0.75, 0.5 , 0.25])
    """
    return Linear(whole_steps("linear", "total_steps", total_steps, minimum=1), lr, min_lr)


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
class PowerDecay(DecayToMinimum):
    """A decay to ``min_lr`` whose curve has an exponent p > 0."""

    power: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle(power=_check.positive(self.kind, "power", self.power))


@dataclass(frozen=True, eq=False)
class Polynomial(PowerDecay):
    """See :func:`polynomial`."""

    kind: ClassVar[str] = "polynomial"

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
class OneMinusPower(PowerDecay):
    """See :func:`one_minus_power`."""

    kind: ClassVar[str] = "one_minus_power"
    power: float = 0.5

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
class DecayAboveZero(Decay):
    """A schedule that reaches ``min_lr`` exactly at the last step, and would reach 0 only after infinitely many."""

    min_lr: float

    def __post_init__(self) -> None:
        remedy = "This decay never reaches 0: give a small positive rate, or use cosine or linear."
        last = _check.positive(self.kind, "min_lr", self.min_lr, remedy)
        lr = _check.positive(self.kind, "lr", self.lr)
        if lr / np.finfo(np.float64).max > last:
            smallest = f"at least {lr / np.finfo(np.float64).max:.2g} for lr = {lr:g}"
            _check.refuse(self.kind, "min_lr", smallest, last, "float64 cannot hold their ratio.")
        self._settle(min_lr=_check.last_rate(self.kind, last, lr))

    def _progress(self, steps: IntArray) -> Array:
        """0 at the first step and 1 at the last; 0 in a run of one step."""
        return steps / max(1, self.total_steps - 1)


@dataclass(frozen=True, eq=False)
class InverseTime(DecayAboveZero):
    """See :func:`inverse_time`."""

    kind: ClassVar[str] = "inverse_time"

    def _rates(self, steps: IntArray) -> Array:
        return self.lr / (1 + (self.lr / self.min_lr - 1) * self._progress(steps))


def inverse_time(total_steps: Steps, lr: float, min_lr: float) -> InverseTime:
    r"""Inverse time decay.

    .. math:: \eta_t = \frac{\eta_0}{1 + \gamma\eta_0 t}

    γ is chosen so that the last step has the rate :math:`\eta_{T-1}` = ``min_lr``. A run of one step has the rate
    ``lr``.

    Reference: arXiv:2110.14109, Appendix "Ridge Regression".

    >>> f = inverse_time(101, lr=1.0, min_lr=0.01)
    >>> round(f(50), 4), round(f(100), 4)
    (0.0198, 0.01)
    """
    return InverseTime(whole_steps("inverse_time", "total_steps", total_steps, minimum=1), lr, min_lr)


@dataclass(frozen=True, eq=False)
class Exponential(DecayAboveZero):
    """See :func:`exponential`."""

    kind: ClassVar[str] = "exponential"

    def _rates(self, steps: IntArray) -> Array:
        return self.lr * (self.min_lr / self.lr) ** self._progress(steps)


def exponential(total_steps: Steps, lr: float, min_lr: float) -> Exponential:
    r"""Exponential decay, :math:`\eta_t = \gamma^t \eta_0`, to the rate ``min_lr`` at the last step.

    A run of one step has the rate ``lr``.

    Reference: arXiv:2110.14109, Appendix "Ridge Regression".

    >>> round(exponential(101, lr=1.0, min_lr=0.01)(50), 4)
    0.1
    """
    return Exponential(whole_steps("exponential", "total_steps", total_steps, minimum=1), lr, min_lr)


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


# The decays at the end of a run, by the name of their shape: functions of the number of steps, lr and min_lr.
TAILS: dict[str, Callable[[int, float, float], Schedule]] = {
    "linear": linear,
    "cosine": cosine,
    "1-sqrt": lambda num_steps, lr, min_lr: one_minus_power(num_steps, lr, min_lr, power=0.5),
    "1-square": lambda num_steps, lr, min_lr: one_minus_power(num_steps, lr, min_lr, power=2.0),
    "sqrt": lambda num_steps, lr, min_lr: polynomial(num_steps, lr, min_lr, power=0.5),
    "square": lambda num_steps, lr, min_lr: polynomial(num_steps, lr, min_lr, power=2.0),
    "exponential": exponential,
    "inverse": inverse_time,
}
# Tails that would need infinitely many steps to reach 0.
ABOVE_ZERO = ("exponential", "inverse")


def tail_of(function: str, argument: str, shape: str, num_steps: int, lr: float, min_lr: float) -> Schedule:
    r"""The decay from ``lr`` towards ``min_lr`` with this shape, over ``num_steps`` steps.

    With x = t/n, the weight of ``lr`` is 1 - x for ``"linear"``, ½(1 + cos πx) for ``"cosine"``, 1 - √x for
    ``"1-sqrt"``, 1 - x² for ``"1-square"``, √(1 - x) for ``"sqrt"`` and (1 - x)² for ``"square"``. The logarithm of the
    rate is linear for ``"exponential"``, and its inverse for ``"inverse"``.

    Args:
        function: Function name for error messages.
        argument: Name of the argument that selects the shape, for error messages.
        shape: One of the keys of ``TAILS``.
        num_steps: Number of steps n of the decay.
        lr: Rate of its first step.
        min_lr: Rate that it would reach at step n; ``"exponential"`` and ``"inverse"`` reach it at their last step.

    >>> tail_of("wsd", "tail", "1-square", 4, 1.0, 0.0).values()
    array([1.    , 0.9375, 0.75  , 0.4375])
    """
    _check.choice(function, argument, shape, tuple(TAILS))
    if shape in ABOVE_ZERO and min_lr == 0:
        remedy = "This decay never reaches 0: give a small positive rate, or another shape."
        _check.refuse(function, "min_lr", f"> 0 with {argument}={shape!r}", min_lr, remedy)
    return TAILS[shape](num_steps, lr, _check.last_rate(function, min_lr, lr))
