"""Schedule, the value that maps a step to its learning rate, and what its subclasses share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, overload

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.sampling import facts_of, text_curve

VERSION = 1


@dataclass(frozen=True, eq=False)
class Schedule(ABC):
    """A learning rate for each step t = 0 … T-1 of a training run.

    A schedule is a pure function of the step. It has no state and does not know the optimizer, so you can ask for
    any step in any order. Beyond the last step it keeps its last value; a negative step is an error. Two schedules
    are equal if their kinds and settings are equal.

    Attributes:
        kind: Name of the function that makes it, such as ``"cosine"``.
        total_steps: Total number of steps T.
        lr: Initial learning rate, or the peak after a warmup.
    """

    kind: ClassVar[str]
    total_steps: int
    lr: float

    def __post_init__(self) -> None:
        self._settle()

    @abstractmethod
    def _rates(self, steps: IntArray) -> Array:
        """The rates at an array of steps, all of them in 0 … T-1."""

    def _piece(self, steps: IntArray) -> IntArray:
        """The number of the piece that each step belongs to, not decreasing; the rate is smooth within a piece."""
        return np.zeros_like(steps)

    def _turns(self) -> IntArray:
        """Steps between which the rate is monotone, in any order; without better knowledge, all steps."""
        return np.arange(self.total_steps)

    @overload
    def __call__(self, step: int) -> float: ...
    @overload
    def __call__(self, step: IntArray) -> Array: ...
    def __call__(self, step: int | IntArray) -> float | Array:
        """The learning rate at ``step``, or at each of an array of steps."""
        if type(step) is int and step >= 0:
            # An array of one: NumPy's loops over arrays may differ from its scalars in the last bit.
            return float(self._rates(np.array([min(step, self.total_steps - 1)]))[0])
        steps = self._checked(step)
        rates = self._rates(np.atleast_1d(np.minimum(steps, self.total_steps - 1)))
        return float(rates[0]) if steps.ndim == 0 else rates

    def values(self) -> Array:
        """All T learning rates."""
        return self._rates(np.arange(self.total_steps))

    @overload
    def factor(self, step: int) -> float: ...
    @overload
    def factor(self, step: IntArray) -> Array: ...
    def factor(self, step: int | IntArray) -> float | Array:
        """f(t) / f(0), for trainers that multiply their own initial rate."""
        first = self(0)
        if first == 0:
            _check.refuse("factor", "schedule", "of a first rate above 0", first, "Use the rates themselves: f(t).")
        return self(step) / first

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain numbers, strings and lists; :func:`schedule_from_dict` restores an equal schedule."""
        settings = {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.init}
        return {"kind": self.kind, "version": VERSION, **settings}

    def describe(self) -> str:
        """A description of the schedule in a few lines of text."""
        return "\n".join([repr(self), *facts_of(self)])

    def preview(self, width: int = 64, height: int = 12) -> str:
        """The curve drawn with characters, for a look before a run."""
        _check.whole("preview", "width", width, minimum=2)
        _check.whole("preview", "height", height, minimum=1)
        return text_curve(self, width, height)

    def _settle(self, **checked: Any) -> None:
        """Check T and lr and store them, with the settings that the constructor has ``checked``."""
        basics = {
            "total_steps": _check.whole(
                self.kind, "total_steps", self.total_steps, minimum=1, maximum=_check.MOST_STEPS
            ),
            "lr": _check.positive(self.kind, "lr", self.lr),
        }
        self._store(**basics, **checked)

    def _store(self, **values: Any) -> None:
        """Set fields, which only constructors may do."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _checked(self, step: Any) -> IntArray:
        steps = np.asarray(step)
        if steps.dtype.kind not in "iu":
            _check.wrong_type(self.kind, "step", "an integer or an array of integers", step)
        if steps.size and steps.min() < 0:
            _check.refuse(self.kind, "step", ">= 0", int(steps.min()), "Steps run from 0 to total_steps - 1.")
        return steps.astype(np.int64)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Schedule) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.kind, self.total_steps, self.lr))

    def __reduce__(self) -> tuple[type[Schedule], tuple[Any, ...]]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)


class Decay(Schedule):
    """A schedule whose rate never rises."""

    def _turns(self) -> IntArray:
        return np.arange(0)


def require_schedule(function: str, schedule: object, argument: str = "schedule") -> Schedule:
    """Return ``schedule``, or raise TypeError in the name of ``function`` if it is not a :class:`Schedule`."""
    if not isinstance(schedule, Schedule):
        _check.wrong_type(function, argument, "a Schedule", schedule)
    return schedule


def between(weight: Array, lr: float, min_lr: float) -> Array:
    """``lr`` at weight 1, ``min_lr`` at weight 0, both exactly, and the straight line between them."""
    return weight * lr + (1 - weight) * min_lr


def _plain(value: Any) -> Any:
    if isinstance(value, Schedule):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(v) for v in value] if isinstance(value, tuple) else value
