"""A requested schedule as a value: it builds the schedule, and the Python code that builds it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from eigencurve import _check
from eigencurve.planning.literals import literal
from eigencurve.planning.subject import Subject
from eigencurve.planning.training import Training
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import Warmup
from eigencurve.schedules.kinds import schedule_from_dict, schedule_of_kind
from eigencurve.spectrum.power_law import PowerLaw

# The optimizer is not known, so generated code uses that of the reader.
UNKNOWN = Training()


@dataclass(frozen=True)
class Recipe:
    """A kind of schedule and its settings.

    Attributes:
        kind: Kind of the schedule; see :func:`eigencurve.schedules.kinds.schedule_of_kind`.
        total_steps: Total number of steps T, including the warmup.
        lr: Initial learning rate; with warmup, the peak rate.
        subject: Spectrum that ``"eigencurve"`` needs. Other kinds ignore it.
        warmup_steps: Number of warmup steps.
        settings: Further arguments of this kind of schedule.
        training: Optimizer in the generated code, with its settings.
        warmup_shape: Shape of the warmup; see :func:`eigencurve.warmup`.
    """

    kind: str
    total_steps: int
    lr: float
    subject: Subject | None = None
    warmup_steps: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: Training = UNKNOWN
    warmup_shape: str = "linear"

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule."""
        spectrum = None if self.subject is None else self.subject.prepared
        rise, shape = self.warmup_steps, self.warmup_shape
        return schedule_of_kind(self.kind, self.total_steps, self.lr, spectrum, rise, shape, **self.settings)

    def imports(self) -> list[str]:
        """Imports that :meth:`statements` need in addition to ``import eigencurve as ec``."""
        zoo = self.subject is not None and (self.subject.code or "").startswith("zoo_spectrum")
        return ["from eigencurve.spectrum.zoo import zoo_spectrum"] if zoo and self.kind == "eigencurve" else []

    def statements(self) -> list[str]:
        """Lines of Python that define an equal ``schedule``."""
        if not self.warmup_steps:
            return self._body()
        shape = "" if self.warmup_shape == "linear" else f", shape={literal(self.warmup_shape)}"
        return [*self._body(), f"schedule = ec.warmup(schedule, {self.warmup_steps}{shape})"]

    def _body(self) -> list[str]:
        words = {"total_steps": self.total_steps - self.warmup_steps, "lr": self.lr, **self.settings}
        arguments = [f"{name}={literal(value)}" for name, value in words.items()]
        if self.kind != "eigencurve":
            return [f"schedule = ec.{self.kind}({', '.join(arguments)})"]
        if self.subject is None or self.subject.code is None:
            return [_from_numbers(self.schedule)]
        call = ", ".join(["spectrum", *arguments])
        return [f"spectrum = {_prepared(self.subject)}", f"schedule = ec.eigencurve({call})"]


@dataclass(frozen=True)
class SavedSchedule:
    """A schedule loaded from a JSON file. Like a :class:`Recipe`, it can also write the code that loads it."""

    path: Path
    schedule: Schedule
    training: Training = UNKNOWN

    def imports(self) -> list[str]:
        """Imports that :meth:`statements` need in addition to ``import eigencurve as ec``."""
        return ["import json", "from pathlib import Path"]

    def statements(self) -> list[str]:
        """The line of Python that loads the file."""
        return [f"schedule = ec.schedule_from_dict(json.loads(Path({literal(str(self.path))}).read_text()))"]


def load_schedule(path: Path, content: bytes) -> SavedSchedule:
    """Parse a schedule that was saved as JSON.

    Args:
        path: Path of the file, for the generated code and error messages.
        content: Bytes of the file: :meth:`Schedule.to_dict` as JSON.
    """
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        _check.refuse("load_schedule", "path", "JSON", str(error), f"The file is {path}.")
    return SavedSchedule(path, schedule_from_dict(fields))


def _prepared(subject: Subject) -> str:
    if isinstance(subject.raw, PowerLaw):
        return str(subject.code)
    return f"ec.spectrum.prepare({subject.code}, weight_decay={subject.weight_decay!r})"


def _from_numbers(schedule: Schedule) -> str:
    body = schedule.schedule if isinstance(schedule, Warmup) else schedule
    return f"schedule = ec.schedule_from_dict({body.to_dict()!r})"
