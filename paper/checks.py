"""Refusals of settings and files, worded as the library's: what must hold, what was found, and the remedy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

LONGEST = 160  # of a value in a message


def refuse(function: str, argument: str, constraint: str, value: object, remedy: str = "") -> NoReturn:
    """Raise ValueError for one invalid argument."""
    raise ValueError(_sentence(function, argument, constraint, value, remedy))


def whole(function: str, argument: str, value: Any, minimum: int, remedy: str = "") -> int:
    """``value`` as an int of at least ``minimum``; floats and booleans raise TypeError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(_sentence(function, argument, "an integer", value, remedy))
    if value < minimum:
        refuse(function, argument, f">= {minimum}", value, remedy)
    return int(value)


def at_least(function: str, argument: str, value: float, minimum: float) -> float:
    """``value``, if it is finite and at least ``minimum``."""
    if not minimum <= value < math.inf:
        refuse(function, argument, f">= {minimum:g} and finite", value)
    return float(value)


def positive(function: str, argument: str, value: float) -> float:
    """``value``, if it is finite and above zero."""
    if not 0 < value < math.inf:
        refuse(function, argument, "> 0 and finite", value)
    return float(value)


def choice(function: str, argument: str, value: str, options: Sequence[str]) -> str:
    """``value``, if it is one of ``options``."""
    if value not in options:
        refuse(function, argument, "one of " + ", ".join(map(repr, options)), value)
    return value


def _sentence(function: str, argument: str, constraint: str, value: object, remedy: str) -> str:
    found = " ".join(repr(value).split())
    shown = found if len(found) <= LONGEST else found[: LONGEST - 3] + "..."
    return f"{function}: '{argument}' must be {constraint}, got {shown}." + (f" {remedy}" if remedy else "")
