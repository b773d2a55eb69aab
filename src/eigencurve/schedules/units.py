r"""Lengths of training in the units that people plan in: steps, epochs, tokens, or a fraction of the run.

A schedule stores whole steps. Wherever one takes a number of steps, it takes a :class:`Length` too, and turns it into
steps at once:

.. math:: n = \Bigl\lfloor \text{amount} \times \text{steps per unit} + \tfrac12 \Bigr\rfloor

in exact arithmetic on the decimal number as it is written (``0.1`` is a tenth): the nearest whole step, halves up.
A length above zero that would round to no step at all is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

from eigencurve import _check

# 100 epochs of CIFAR-10 with batch size 128: the run length of the paper's curves, and the default where none is given.
TYPICAL_STEPS = 39_100


@dataclass(frozen=True, repr=False)
class Length:
    """So much of a training run. Made by :func:`steps`, :func:`epochs`, :func:`tokens` or :func:`fraction`.

    Attributes:
        amount: how many units, exact.
        unit: ``"steps"``, ``"epochs"``, ``"tokens"`` or ``"fraction"``.
        steps_per_unit: exact; None for a fraction, which is of the run's total.
    """

    amount: Fraction
    unit: str
    steps_per_unit: Fraction | None

    def exact_steps(self, total: int | None = None) -> Fraction:
        """The length in steps before it is rounded; a fraction needs the ``total`` that it is of."""
        per_unit = self.steps_per_unit if self.steps_per_unit is not None else total
        if per_unit is None:
            _check.refuse("Length", "total", "given for a fraction", None, "Ask for steps, epochs or tokens instead.")
        return self.amount * per_unit

    def before(self, rest: int) -> Length:
        """In steps, where ``rest`` steps follow it: a fraction p of a whole n + rest is n = p/(1 - p) rest."""
        if self.steps_per_unit is not None:
            return self
        if self.amount == 1:
            _check.refuse("Length", "amount", "< 1 where more steps follow", self)
        return Length(self.amount / (1 - self.amount) * rest, "steps", Fraction(1))

    def __repr__(self) -> str:
        return f"{float(self.amount):g} {'of the run' if self.unit == 'fraction' else self.unit}"


# What every number of steps may be given as.
Steps = int | Length


def steps(amount: int) -> Length:
    """So many optimizer updates, the same as the bare number.

    >>> nearest_step(steps(1000).exact_steps())
    1000
    """
    return Length(Fraction(_check.whole("steps", "amount", amount, minimum=0)), "steps", Fraction(1))


def epochs(amount: float, steps_per_epoch: int) -> Length:
    """So many passes over the data.

    Args:
        amount: not negative; halves of an epoch, say, are welcome.
        steps_per_epoch: optimizer updates an epoch, not microbatches.

    >>> from eigencurve import cosine
    >>> cosine(epochs(100, steps_per_epoch=391), lr=0.1).total_steps
    39100
    """
    per_epoch = _check.whole("epochs", "steps_per_epoch", steps_per_epoch, minimum=1)
    return Length(_exact("epochs", amount), "epochs", Fraction(per_epoch))


def tokens(amount: float, tokens_per_step: float) -> Length:
    """So many tokens (or examples, or anything else that is counted).

    Args:
        amount: not negative.
        tokens_per_step: of one optimizer update: over all processes and accumulated microbatches.

    >>> from eigencurve import cosine
    >>> cosine(tokens(1e9, tokens_per_step=2**19), lr=3e-4).total_steps
    1907
    """
    _check.positive("tokens", "tokens_per_step", tokens_per_step)
    return Length(_exact("tokens", amount), "tokens", 1 / _exact("tokens", tokens_per_step))


def fraction(amount: float) -> Length:
    """A part of the whole run, between 0 and 1.

    >>> from eigencurve import multistep
    >>> multistep(39_100, lr=0.1, milestones=[fraction(0.5), fraction(0.75)]).milestones
    (19550, 29325)
    """
    part = _exact("fraction", amount)
    if part > 1:
        _check.refuse("fraction", "amount", "<= 1", amount, "It is a part of the run; 10 % is 0.1.")
    return Length(part, "fraction", None)


def whole_steps(function: str, argument: str, value: Any, minimum: int, total: int | None = None) -> int:
    """``value``, an integer or a :class:`Length`, as whole steps of at least ``minimum``.

    Args:
        function: the name that errors begin with.
        argument: its argument.
        value: what was given.
        minimum: the fewest steps.
        total: the run's length, where a fraction has one to refer to.
    """
    if not isinstance(value, Length):
        remedy = "" if hasattr(value, "__index__") else "Other units: epochs, tokens, fraction."
        return _check.whole(function, argument, value, minimum, remedy)
    if value.unit == "fraction" and total is None:
        remedy = "There is nothing yet that it could be a part of."
        _check.refuse(function, argument, "in steps, epochs or tokens", value, remedy)
    exact = value.exact_steps(total)
    number = nearest_step(exact)
    if number == 0 and exact > 0:
        _check.refuse(function, argument, "0, or at least half a step", f"{value}: {float(exact):.3g} of a step")
    return _check.whole(function, argument, number, minimum)


def nearest_step(exact: Fraction) -> int:
    """The nearest whole number, halves up.

    >>> nearest_step(Fraction(5, 2)), nearest_step(Fraction(12, 5))
    (3, 2)
    """
    return floor(exact + Fraction(1, 2))


def _exact(function: str, amount: Any) -> Fraction:
    """The number as it is written, in decimals: 0.1 is a tenth."""
    if isinstance(amount, Fraction):
        number = amount
    else:
        _check.at_least(function, "amount", amount, 0.0)
        number = Fraction(int(amount)) if hasattr(amount, "__index__") else Fraction(repr(float(amount)))
    if number < 0:
        _check.refuse(function, "amount", ">= 0", amount)
    return number
