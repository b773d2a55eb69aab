"""How a schedule is asked for, as a value: it makes the schedule, and the line of Python that makes it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from eigencurve import _check
from eigencurve.planning.subject import Subject
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.by_kind import schedule_of_kind
from eigencurve.schedules.compose import Warmup
from eigencurve.schedules.serial import schedule_from_dict
from eigencurve.spectrum.power_law import PowerLaw


@dataclass(frozen=True)
class Recipe:
    """A kind of schedule with its settings.

    Attributes:
        kind: of the schedule; see :func:`eigencurve.schedules.by_kind.schedule_of_kind`.
        total_steps: T, the warmup among them.
        lr: the initial or peak rate.
        subject: the spectrum, for ``"eigencurve"``.
        warmup_steps: before the schedule proper.
        settings: the kind's own arguments.
        weight_decay: of the optimizer in the code.
    """

    kind: str
    total_steps: int
    lr: float
    subject: Subject | None = None
    warmup_steps: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    weight_decay: float = 0.0

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule itself."""
        spectrum = None if self.subject is None else self.subject.prepared
        return schedule_of_kind(self.kind, self.total_steps, self.lr, spectrum, self.warmup_steps, **self.settings)

    def imports(self) -> list[str]:
        """What :meth:`statements` need beside ``import eigencurve as ec``."""
        zoo = self.subject is not None and (self.subject.code or "").startswith("zoo_spectrum")
        return ["from eigencurve.spectrum.zoo import zoo_spectrum"] if zoo and self.kind == "eigencurve" else []

    def statements(self) -> list[str]:
        """Lines of Python after which ``schedule`` is an equal schedule."""
        lines = self._body()
        return [*lines, f"schedule = ec.warmup(schedule, {self.warmup_steps})"] if self.warmup_steps else lines

    def _body(self) -> list[str]:
        words = {"total_steps": self.total_steps - self.warmup_steps, "lr": self.lr, **self.settings}
        arguments = [f"{name}={_literal(value)}" for name, value in words.items()]
        if self.kind != "eigencurve":
            return [f"schedule = ec.{self.kind}({', '.join(arguments)})"]
        if self.subject is None or self.subject.code is None:
            return [_from_numbers(self.schedule)]
        call = ", ".join(["spectrum", *arguments])
        return [f"spectrum = {_prepared(self.subject)}", f"schedule = ec.eigencurve({call})"]


@dataclass(frozen=True)
class SavedSchedule:
    """A schedule from the JSON file that it was written to; what a :class:`Recipe` offers, without its settings."""

    path: Path
    schedule: Schedule
    weight_decay: float = 0.0

    def imports(self) -> list[str]:
        """What :meth:`statements` need beside ``import eigencurve as ec``."""
        return ["import json", "from pathlib import Path"]

    def statements(self) -> list[str]:
        """The line of Python that reads the file again."""
        return [f"schedule = ec.schedule_from_dict(json.loads(Path({_literal(str(self.path))}).read_text()))"]


def load_schedule(path: Path, content: bytes) -> SavedSchedule:
    """The schedule whose :meth:`Schedule.to_dict` was written to ``path``, from the file's bytes."""
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        _check.refuse("load_schedule", "path", "JSON", str(error), f"The file is {path}.")
    return SavedSchedule(path, schedule_from_dict(fields))


def _prepared(subject: Subject) -> str:
    if isinstance(subject.shape, PowerLaw):
        return str(subject.code)
    return f"ec.prepare({subject.code}, weight_decay={subject.weight_decay!r})"


def _from_numbers(schedule: Schedule) -> str:
    body = schedule.schedule if isinstance(schedule, Warmup) else schedule
    return f"schedule = ec.schedule_from_dict({body.to_dict()!r})"


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
