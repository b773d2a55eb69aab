"""Pickles of plain values: numbers, text, containers and NumPy arrays of numbers. No code in the file is executed.

A pickle is a program that may name and call any function. Here every name maps to an inert object of this module or is
refused, so the file cannot even reach NumPy's own constructors.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

# The exceptions that the unpickler may raise on bytes that are not a pickle.
DAMAGE = (ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
MEMO_CODES = ("PUT", "BINPUT", "LONG_BINPUT")
NUMBERS = re.compile(r"[|<>=]?[biuf][1248]")


class ForbiddenNameError(pickle.UnpicklingError):
    """The pickle names something that plain values do not need."""


class _Name:
    """A name that a pickle may use; calling it has the effect of that name on plain values and no other."""

    __slots__ = ("_meaning",)

    def __init__(self, meaning: Callable[..., Any] | None = None) -> None:
        self._meaning = meaning

    def __call__(self, *arguments: Any) -> Any:
        if self._meaning is None:
            raise pickle.UnpicklingError("a class is called")
        return self._meaning(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("a name is changed")


class _Type:
    """A NumPy number type under construction."""

    __slots__ = ("code",)

    def __init__(self, code: str | bytes, *_: Any) -> None:
        self.code = _text(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = _text(state[1])
        self.code = order + self.code.lstrip("|<>=")

    def numpy(self) -> np.dtype[Any]:
        if not NUMBERS.fullmatch(self.code):
            raise pickle.UnpicklingError(f"an array of {self.code!r:.50}, which are not numbers")
        return np.dtype(self.code)


class _Array:
    """A NumPy array under construction."""

    __slots__ = ("values",)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_columns, content = state
        self.values = _array(content, kind, shape, "F" if by_columns else "C")


def _text(value: str | bytes) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else value


def _array(content: bytes, kind: _Type, shape: tuple[int, ...], order: Any) -> np.ndarray[Any, Any]:
    flat = np.frombuffer(content, kind.numpy())
    return flat.reshape(shape, order="F" if _text(order) == "F" else "C")


def _frombuffer(content: bytes, kind: _Type, shape: tuple[int, ...], order: Any) -> _Array:
    array = _Array()
    array.values = _array(content, kind, shape, order)
    return array


def _names() -> dict[tuple[str, str], _Name]:
    names = {
        ("numpy", "ndarray"): _Name(),
        ("numpy", "dtype"): _Name(_Type),
        ("_codecs", "encode"): _Name(lambda text, _: text.encode("latin-1")),
    }
    for core in ("numpy.core", "numpy._core"):
        names[f"{core}.multiarray", "_reconstruct"] = _Name(lambda *_: _Array())
        names[f"{core}.numeric", "_frombuffer"] = _Name(_frombuffer)
    return names


class _PlainUnpickler(pickle.Unpickler):
    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="bytes")
        self._allowed = _names()

    def find_class(self, module: str, name: str) -> _Name:
        if (module, name) not in self._allowed:
            raise ForbiddenNameError(f"{module}.{name}"[:200])
        return self._allowed[module, name]


def load_plain(content: bytes) -> Any:
    """Load a pickle of plain values; text from Python 2 becomes bytes.

    Raises:
        ForbiddenNameError: The pickle names anything but NumPy's arrays and types.
        pickle.UnpicklingError: The pickle is damaged, truncated, or holds arrays of anything but numbers.

    >>> load_plain(pickle.dumps({"labels": [1, 2], "data": np.arange(3, dtype=np.uint8)}))
    {'labels': [1, 2], 'data': array([0, 1, 2], dtype=uint8)}
    """
    try:
        _require_honest_sizes(content)
        return _finished(_PlainUnpickler(content).load(), made={})
    except pickle.UnpicklingError:
        raise
    except DAMAGE as error:
        raise pickle.UnpicklingError(f"damaged or truncated ({error!s:.200})") from error


def _require_honest_sizes(content: bytes) -> None:
    """Refuse a pickle that announces more bytes, or memo places, than it has; the unpickler would reserve them all."""
    for opcode, argument, _ in pickletools.genops(content):  # raises ValueError if announced bytes do not follow
        if opcode.name in MEMO_CODES and isinstance(argument, int) and argument > len(content):
            raise pickle.UnpicklingError(f"a memo of {argument} places in {len(content)} bytes")


def _finished(value: Any, made: dict[int, Any]) -> Any:
    """``value`` with its arrays completed; a container that occurs several times is completed once."""
    if isinstance(value, _Array):
        return value.values
    if isinstance(value, _Name | _Type):
        raise pickle.UnpicklingError("a name is used as a value")
    if id(value) not in made and isinstance(value, list | tuple):
        made[id(value)] = type(value)([_finished(part, made) for part in value])
    if id(value) not in made and isinstance(value, dict):
        made[id(value)] = {_finished(key, made): _finished(part, made) for key, part in value.items()}
    return made.get(id(value), value)
