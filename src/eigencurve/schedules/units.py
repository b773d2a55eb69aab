r"""Training lengths in the units that people plan in: steps, epochs, tokens, or a fraction of the run.

A schedule stores whole steps. Wherever you pass a number of steps, you can pass a :class:`Length` instead. It is
converted at once:

.. math:: n = \Bigl\lfloor \text{amount} \times \text{steps per unit} + \tfrac12 \Bigr\rfloor

This is the nearest whole step, with halves rounded up, in exact arithmetic on the decimal number as written (``0.1``
is a tenth). A length above zero that would round to zero steps is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

from eigencurve import _check

# 100 epochs of CIFAR-10 with batch size 128, the run length of the paper's curves. The default if none is given.
TYPICAL_STEPS = 39_100


@dataclass(frozen=True, repr=False)
class Length:
    """The length of a part of a training run, from :func:`steps`, :func:`epochs`, :func:`tokens` or :func:`fraction`.

    Attributes:
        amount: Exact number of units.
        unit: ``"steps"``, ``"epochs"``, ``"tokens"`` or ``"fraction"``.
        steps_per_unit: Exact number of steps per unit; None for a fraction, which refers to the whole run.
    """

    amount: Fraction
    unit: str
    steps_per_unit: Fraction | None

    def exact_steps(self, total: int | None = None) -> Fraction:
        """The length in steps before rounding; a fraction needs the ``total`` number of steps."""
        per_unit = self.steps_per_unit if self.steps_per_unit is not None else total
        if per_unit is None:
            _check.refuse("Length", "total", "given for a fraction", None, "Use steps, epochs or tokens instead.")
        return self.amount * per_unit

    def before(self, rest: int) -> Length:
        """The length in steps if ``rest`` steps follow it: a fraction p of n + rest steps is n = p/(1 - p) rest."""
        if self.steps_per_unit is not None:
            return self
        if self.amount == 1:
            _check.refuse("Length", "amount", "< 1 if more steps follow", self)
        return Length(self.amount / (1 - self.amount) * rest, "steps", Fraction(1))

    def __repr__(self) -> str:
        return f"{float(self.amount):g} {'of the run' if self.unit == 'fraction' else self.unit}"


# The type of every argument that is a number of steps.
Steps = int | Length


def steps(amount: int) -> Length:
    """A length in optimizer updates, the same as the bare number.

    >>> nearest_step(steps(1000).exact_steps())
    1000
    """
    return Length(Fraction(_check.whole("steps", "amount", amount, minimum=0)), "steps", Fraction(1))


def epochs(amount: float, steps_per_epoch: int) -> Length:
    """A length in passes over the data.

    Args:
        amount: Number of epochs, not negative; need not be whole.
        steps_per_epoch: Number of optimizer updates per epoch (not microbatches).

    >>> from eigencurve import cosine
    >>> cosine(epochs(100, steps_per_epoch=391), lr=0.1).total_steps
    39100
    """
    per_epoch = _check.whole("epochs", "steps_per_epoch", steps_per_epoch, minimum=1)
    return Length(_exact("epochs", amount), "epochs", Fraction(per_epoch))


def tokens(amount: float, tokens_per_step: float) -> Length:
    """A length in tokens, or in examples or anything else that you count.

    Args:
        amount: Number of tokens, not negative.
        tokens_per_step: Number of tokens per optimizer update, over all processes and accumulated microbatches.

    >>> from eigencurve import cosine
    >>> cosine(tokens(1e9, tokens_per_step=2**19), lr=3e-4).total_steps
    1907
    """
    _check.positive("tokens", "tokens_per_step", tokens_per_step)
    return Length(_exact("tokens", amount), "tokens", 1 / _exact("tokens", tokens_per_step))


def fraction(amount: float) -> Length:
    """A fraction of the whole run, between 0 and 1.

    >>> from eigencurve import multistep
    >>> multistep(39_100, lr=0.1, milestones=[fraction(0.5), fraction(0.75)]).milestones
    (19550, 29325)
    """
    part = _exact("fraction", amount)
    if part > 1:
        _check.refuse("fraction", "amount", "<= 1", amount, "It is a fraction of the run: 10 % is 0.1.")
    return Length(part, "fraction", None)


def whole_steps(function: str, argument: str, value: Any, minimum: int, total: int | None = None) -> int:
    """Convert an integer or a :class:`Length` to at least ``minimum`` whole steps.

    Args:
        function: Function name for error messages.
        argument: Argument name for error messages.
        value: Integer or Length to convert.
        minimum: Smallest number of steps allowed.
        total: Total number of steps that a fraction refers to; None if fractions are not allowed.
    """
    if not isinstance(value, Length):
        remedy = "" if hasattr(value, "__index__") else "Other units: epochs, tokens, fraction."
        return _check.whole(function, argument, value, minimum, remedy, _check.MOST_STEPS)
    if value.unit == "fraction" and total is None:
        remedy = "The length of the whole run is not known here."
        _check.refuse(function, argument, "in steps, epochs or tokens", value, remedy)
    exact = value.exact_steps(total)
    number = nearest_step(exact)
    if number == 0 and exact > 0:
        _check.refuse(function, argument, "0, or at least half a step", f"{value}: {float(exact):.3g} of a step")
    return _check.whole(function, argument, number, minimum, maximum=_check.MOST_STEPS)


def nearest_step(exact: Fraction) -> int:
    """The nearest whole number, with halves rounded up.

    >>> nearest_step(Fraction(5, 2)), nearest_step(Fraction(12, 5))
    (3, 2)
    """
    return floor(exact + Fraction(1, 2))


def _exact(function: str, amount: Any) -> Fraction:
    """The decimal number as written: 0.1 is a tenth."""
    if isinstance(amount, Fraction):
        number = amount
    else:
        _check.at_least(function, "amount", amount, 0.0)
        number = Fraction(int(amount)) if hasattr(amount, "__index__") else Fraction(repr(float(amount)))
    if number < 0:
        _check.refuse(function, "amount", ">= 0", amount)
    return number
