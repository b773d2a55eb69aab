"""Old names that keep working for one version, with a DeprecationWarning that says where they are now."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar, cast

Callable_ = TypeVar("Callable_", bound=Callable[..., Any])


def moved(old: str, new: str, stacklevel: int = 3) -> Any:
    """The object at ``new``, a dotted path, after a DeprecationWarning that names it.

    Args:
        old: The name that was used.
        new: Where it is now.
        stacklevel: Number of frames from here to the code that used the old name.
    """
    warnings.warn(f"{old} will go in the next version: use {new}.", DeprecationWarning, stacklevel=stacklevel)
    module, _, name = new.rpartition(".")
    return getattr(import_module(module), name)


def renamed(**names: str) -> Callable[[Callable_], Callable_]:
    """Decorator: keywords that have a new name still work, with a DeprecationWarning.

    Args:
        **names: New name of each old keyword.

    >>> @renamed(num_steps="num_products")
    ... def measure(num_products):
    ...     return num_products
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     measure(num_steps=3)
    3
    """

    def decorated(function: Callable_) -> Callable_:
        if isinstance(function, type):
            function.__init__ = renamed(**names)(function.__init__)  # type: ignore[misc]
            return function

        @wraps(function)
        def accepting_old_names(*args: Any, **given: Any) -> Any:
            for old, new in names.items():
                if old in given:
                    text = f"'{old}' will go in the next version: use '{new}'."
                    warnings.warn(text, DeprecationWarning, stacklevel=2)
                    given[new] = given.pop(old)
            return function(*args, **given)

        return cast(Callable_, accepting_old_names)

    return decorated


def renamed_attribute(old: str, new: str) -> property:
    """A property for the old name of an attribute, which warns and returns the attribute ``new``."""

    def get(instance: object) -> Any:
        warnings.warn(f"'{old}' will go in the next version: use '{new}'.", DeprecationWarning, stacklevel=2)
        return getattr(instance, new)

    return property(get)
