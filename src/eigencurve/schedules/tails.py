"""The shapes in which a rate decays at the end of a run, by name."""

from __future__ import annotations

from collections.abc import Callable

from eigencurve import _check
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.classic import cosine, exponential, inverse_time, linear
from eigencurve.schedules.decays import one_minus_power, polynomial

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
