"""Argument checks with uniform error messages.

The message is ``<function>: '<argument>' must be <constraint>, got <value>.``, followed by a remedy if there is one.
A wrong type raises :class:`ArgumentTypeError`, a wrong value :class:`ArgumentValueError`. Both carry the parts of the
message, so that a command can name its option, and a page its field, in place of the argument.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any, NoReturn

import numpy as np

from eigencurve._arrays import Array

# The largest integer that an int64 array holds, and the largest number of steps that float64 counts one by one.
MOST_WHOLE = 2**63 - 1
MOST_STEPS = 2**53
# Minimum similarity for a suggestion.
NEAR = 0.7


class Arg(str):
    """The name of an argument within a constraint, a remedy or a warning; Python shows it in quotes."""

    __slots__ = ()


class Description(str):
    """Words in place of a value in a message; shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


# Text that may name arguments: a plain string, or its parts in order.
Words = str | tuple[str, ...]


def quoted(name: str) -> str:
    """An argument as Python users know it."""
    return f"'{name}'"


def spelled(words: Words, name_of: Callable[[str], str] = quoted) -> str:
    """``words`` as one string, with every :class:`Arg` as ``name_of`` spells it.

    >>> spelled(("Lower ", Arg("min_lr"), "."), lambda name: f"--{name.replace('_', '-')}")
    'Lower --min-lr.'
    """
    parts = (words,) if isinstance(words, str) else words
    return "".join(name_of(part) if isinstance(part, Arg) else part for part in parts)


class ArgumentError(Exception):
    """One invalid argument of a function.

    Attributes:
        function: Name of the function.
        argument: Name of the argument.
        constraint: What the argument must be.
        value: The value that was passed.
        remedy: What to do about it; empty if that is obvious.
    """

    def __init__(self, function: str, argument: str, constraint: Words, value: object, remedy: Words = "") -> None:
        self.function, self.argument, self.value = function, argument, value
        self.constraint, self.remedy = constraint, remedy
        super().__init__(f"{function}: {self.sentence()}")

    def sentence(self, name_of: Callable[[str], str] = quoted, show_none: bool = True) -> str:
        """The message without the function, with every argument as ``name_of`` spells it.

        Args:
            name_of: Spells an argument, for example as the option of a command.
            show_none: Whether to show a value of None; a command leaves it out, where it means an option not given.
        """
        got = "" if self.value is None and not show_none else f", got {shown(self.value)}"
        text = f"{name_of(self.argument)} must be {spelled(self.constraint, name_of)}{got}."
        return f"{text} {remedy}" if (remedy := spelled(self.remedy, name_of)) else text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.function, self.argument, self.constraint, self.value, self.remedy)


class ArgumentValueError(ArgumentError, ValueError):
    """An argument of the right type with a value that is not allowed."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of the wrong type."""


class ArgumentWarning(UserWarning):
    """A warning whose remedy names arguments; ``words`` are its parts.

    >>> str(ArgumentWarning(("Pass ", Arg("resumed"), ".")))
    "Pass 'resumed'."
    """

    def __init__(self, words: Words) -> None:
        self.words = words
        super().__init__(spelled(words))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.words,)


def shown(value: object) -> str:
    """The repr of ``value``, shortened for an error message."""
    if isinstance(value, int) and value.bit_length() > 256:  # Python refuses to print the longest integers
        return f"an integer of about {int(value.bit_length() * math.log10(2)) + 1} digits"
    text = " ".join(repr(value).split())
    return text if len(text) <= 160 else text[:157] + "..."


def refuse(function: str, argument: str, constraint: Words, value: object, remedy: Words = "") -> NoReturn:
    """Raise ArgumentValueError."""
    raise ArgumentValueError(function, argument, constraint, value, remedy)


def wrong_type(function: str, argument: str, constraint: Words, value: object, remedy: Words = "") -> NoReturn:
    """Raise ArgumentTypeError."""
    raise ArgumentTypeError(function, argument, constraint, value, remedy)


def whole(function: str, argument: str, value: Any, minimum: int, remedy: str = "", maximum: int = MOST_WHOLE) -> int:
    """``value`` as an int from ``minimum`` to ``maximum``; floats and booleans raise TypeError."""
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        wrong_type(function, argument, "an integer", value, remedy)
    number = operator.index(value)
    if number < minimum:
        refuse(function, argument, f">= {minimum}", number, remedy)
    if number > maximum:
        refuse(function, argument, f"<= {maximum}", number, remedy)
    return number


def real(function: str, argument: str, value: Any, remedy: str = "") -> float:
    """``value`` as a finite float."""
    if isinstance(value, bool | np.bool_ | str | bytes) or not hasattr(value, "__float__"):
        wrong_type(function, argument, "a number", value, remedy)
    try:
        number = float(value)
    except OverflowError:
        refuse(function, argument, "small enough for float64", value, remedy)
    if not math.isfinite(number):
        refuse(function, argument, "finite", number, remedy)
    return number


def positive(function: str, argument: str, value: Any, remedy: str = "") -> float:
    """``value`` as a finite float above zero."""
    number = real(function, argument, value, remedy)
    if number <= 0:
        refuse(function, argument, "> 0", number, remedy)
    return number


def at_least(function: str, argument: str, value: Any, minimum: float, remedy: str = "") -> float:
    """``value`` as a finite float of at least ``minimum``."""
    number = real(function, argument, value, remedy)
    if number < minimum:
        refuse(function, argument, f">= {minimum:g}", number, remedy)
    return number


def last_rate(function: str, value: Any, lr: float) -> float:
    """``min_lr`` as a finite float in [0, lr]."""
    number = at_least(function, "min_lr", value, 0.0)
    if number > lr:
        remedy = ("A schedule decays: swap the two, or lower ", Arg("min_lr"), ".")
        refuse(function, "min_lr", f"<= lr = {lr:g}", number, remedy)
    return number


def choice(function: str, argument: str, value: Any, options: Sequence[str]) -> str:
    """``value``, if it is one of ``options``."""
    if value not in options:
        refuse(function, argument, "one of " + ", ".join(map(repr, options)), value, suggestion(value, options))
    return str(value)


def real_array(function: str, argument: str, constraint: str, values: Any) -> Array:
    """``values`` as a float64 array of any shape; complex numbers raise TypeError instead of losing a part."""
    try:
        if np.iscomplexobj(values):
            raise TypeError
        return np.asarray(values, dtype=np.float64)
    except OverflowError:
        refuse(function, argument, "small enough for float64", "an integer beyond its range")
    except (TypeError, ValueError):
        wrong_type(function, argument, constraint, values)


def suggestion(value: Any, options: Sequence[str]) -> str:
    """``"Did you mean 'cosine'?"`` with the option that is nearest to ``value``, or "" if none is near.

    An option is also near if its beginning is, because long names are often cut short.

    >>> suggestion("Cosin", ["linear", "cosine_power"])
    "Did you mean 'cosine_power'?"
    """
    if not isinstance(value, str) or not value or not options:
        return ""
    word = value.lower()
    nearness = [max(_likeness(word, name.lower()), _likeness(word, name.lower()[: len(word)])) for name in options]
    best = max(nearness)
    return f"Did you mean {options[nearness.index(best)]!r}?" if best >= NEAR else ""


def _likeness(first: str, second: str) -> float:
    return SequenceMatcher(None, first, second).ratio()


def vector(function: str, argument: str, values: Any) -> Array:
    """``values`` as a one-dimensional, non-empty, finite float64 array."""
    array = real_array(function, argument, "a sequence of real numbers", values)
    if array.ndim != 1 or array.size == 0:
        refuse(function, argument, "a non-empty one-dimensional sequence", f"shape {array.shape}")
    if not np.isfinite(array).all():
        place = int(np.flatnonzero(~np.isfinite(array))[0])
        refuse(function, argument, "finite", float(array[place]), f"It is at position {place}.")
    return array
