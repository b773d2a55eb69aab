"""Argument checks with uniform error messages.

The message is ``<function>: '<argument>' must be <constraint>, got <value>.``, followed by a remedy if there is one.
A wrong type raises TypeError, a wrong value ValueError.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, NoReturn

import numpy as np

from eigencurve._arrays import Array

# The largest integer that an int64 array holds, and the largest number of steps that float64 counts one by one.
MOST_WHOLE = 2**63 - 1
MOST_STEPS = 2**53
# Least likeness of a word to an option that is suggested instead.
NEAR = 0.7


def shown(value: object) -> str:
    """The repr of ``value``, shortened for an error message."""
    if isinstance(value, int) and value.bit_length() > 256:  # Python refuses to print the longest integers
        return f"an integer of about {int(value.bit_length() * math.log10(2)) + 1} digits"
    text = " ".join(repr(value).split())
    return text if len(text) <= 160 else text[:157] + "..."


def sentence(function: str, argument: str, constraint: str, value: object, remedy: str = "") -> str:
    """The message for one invalid argument."""
    return f"{function}: '{argument}' must be {constraint}, got {shown(value)}." + (f" {remedy}" if remedy else "")


def refuse(function: str, argument: str, constraint: str, value: object, remedy: str = "") -> NoReturn:
    """Raise ValueError for one invalid argument."""
    raise ValueError(sentence(function, argument, constraint, value, remedy))


def whole(function: str, argument: str, value: Any, minimum: int, remedy: str = "", maximum: int = MOST_WHOLE) -> int:
    """``value`` as an int from ``minimum`` to ``maximum``; floats and booleans raise TypeError."""
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(sentence(function, argument, "an integer", value, remedy))
    number = operator.index(value)
    if number < minimum:
        refuse(function, argument, f">= {minimum}", number, remedy)
    if number > maximum:
        refuse(function, argument, f"<= {maximum}", number, remedy)
    return number


def real(function: str, argument: str, value: Any, remedy: str = "") -> float:
    """``value`` as a finite float."""
    if isinstance(value, bool | np.bool_ | str | bytes) or not hasattr(value, "__float__"):
        raise TypeError(sentence(function, argument, "a number", value, remedy))
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
        refuse(function, "min_lr", f"<= lr = {lr:g}", number, "A schedule decays: swap the two, or lower 'min_lr'.")
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
        raise TypeError(sentence(function, argument, constraint, values)) from None


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
