"""Plan: the answer to "which schedule should this run use?", with everything that it rests on."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from eigencurve import _check
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.comparison import ComparisonRow, ComparisonTable

if TYPE_CHECKING:
    from eigencurve.spectrum.source import SpectrumSource

__all__ = ["ComparisonRow", "ComparisonTable", "Evidence", "Plan", "PlanInput", "Training"]

Source = Literal["measured", "fitted", "given", "assumed"]
OPTIMIZERS = ("adam", "adamw", "sgd")
# β₁ of Adam, and the momentum of SGD, unless the run has others.
BETA1, MOMENTUM = 0.9, 0.0


@dataclass(frozen=True)
class PlanInput:
    """One input of a plan.

    Attributes:
        name: Name of the quantity, such as ``"gradient noise"``.
        value: Its value as text.
        source: ``"measured"``, ``"fitted"``, ``"given"`` or ``"assumed"``.
        effect: For an assumed input, how the answer changes if it is wrong, or what to do about it.
    """

    name: str
    value: str
    source: Source
    effect: str = ""


@dataclass(frozen=True)
class Evidence:
    """The rule that gave a verdict.

    Attributes:
        kind: ``"published runs"``, ``"quadratic"`` or ``"forecast"``.
        sentence: The rule in one sentence.
    """

    kind: str
    sentence: str


@dataclass(frozen=True)
class Training:
    """The optimizer of a run and its settings; generated code contains these and no others.

    Attributes:
        optimizer: ``"sgd"``, ``"adam"`` or ``"adamw"``; None if it is unknown, and the code uses the reader's own.
        momentum: Momentum of SGD, or β₁ of Adam.
        nesterov: Whether it is Nesterov momentum.
        weight_decay: Weight decay of the optimizer.
        batch_size: Batch size of the run, if it is given.
        sources: ``"given"``, ``"measured"`` or ``"assumed"`` for ``"optimizer"``, ``"momentum"`` and
            ``"weight_decay"``.
    """

    optimizer: str | None = None
    momentum: float = MOMENTUM
    nesterov: bool = False
    weight_decay: float = 0.0
    batch_size: int | None = None
    sources: Mapping[str, Source] = field(default_factory=dict, compare=False)

    @property
    def is_adam(self) -> bool:
        """Whether ``momentum`` is β₁ of Adam."""
        return self.optimizer in ("adam", "adamw")

    @property
    def momentum_name(self) -> str:
        """``"momentum"``, or ``"beta1"`` for Adam."""
        return "beta1" if self.is_adam else "momentum"

    @property
    def assumed(self) -> list[str]:
        """The settings that nobody gave, such as ``"momentum 0"``."""
        values = {
            "optimizer": f"optimizer {self.optimizer}",
            "momentum": f"{self.momentum_name} {self.momentum:g}",
            "weight_decay": f"weight decay {self.weight_decay:g}",
        }
        return [text for name, text in values.items() if self.sources.get(name) == "assumed"]

    def inputs(self) -> tuple[PlanInput, ...]:
        """The optimizer, its settings and the batch size as inputs of a plan; an unknown optimizer has none."""
        size = () if self.batch_size is None else (PlanInput("batch size", f"{self.batch_size:,}", "given"),)
        if self.optimizer is None:
            return size
        momentum = f"{self.momentum:g}" + (", Nesterov" if self.nesterov else "")
        settings = {
            "optimizer": ("optimizer", self.optimizer),
            "momentum": (self.momentum_name, momentum),
            "weight_decay": ("weight decay", f"{self.weight_decay:g}"),
        }
        return (*(self._input(key, *setting) for key, setting in settings.items()), *size)

    def _input(self, key: str, name: str, value: str) -> PlanInput:
        source = self.sources.get(key, "given")
        when = "if your optimizer has some" if value == "0" else "if yours differs"
        return PlanInput(name, value, source, f"set it {when}" if source == "assumed" else "")


@dataclass(frozen=True, eq=False)
class Plan:
    """The recommended schedule and why; ``print`` shows all of it, and a notebook shows it as a table.

    Attributes:
        verdict: The answer in three sentences.
        name: Identifier of the recommended schedule, such as ``"wsd_40"``; see
            :mod:`eigencurve.planning.baselines`.
        label: Its name for people, such as ``"WSD, last 40 %"``.
        schedule: The recommended schedule, with its warmup, ready for every adapter.
        lr: Recommended peak rate.
        lr_range: Lowest and highest peak rate that are nearly as good.
        lr_limit: The reason not to go higher, as a clause.
        table: The recommended schedule and the usual ones, best first; its reference is the recommendation.
        inputs: The inputs of the verdict, each measured, fitted, given or assumed.
        evidence: The rule that gave the verdict.
        gap: Largest possible gain of any other schedule, relative to the loss; None if there is no certificate.
        warnings: What may mislead, with a remedy; one sentence each.
        training: Optimizer that the schedule is for, with its settings.
        spectrum: The spectrum that the plan rests on, if there is one.
    """

    verdict: str
    name: str
    label: str
    schedule: Schedule
    lr: float
    lr_range: tuple[float, float]
    lr_limit: str
    table: ComparisonTable
    inputs: tuple[PlanInput, ...]
    evidence: Evidence
    gap: float | None
    warnings: tuple[str, ...]
    training: Training
    spectrum: SpectrumSource | None = None

    @property
    def optimizer(self) -> str | None:
        """Name of the optimizer that the schedule is for; None if logs do not tell."""
        return self.training.optimizer

    @property
    def notes(self) -> tuple[str, ...]:
        """Old name of ``warnings``."""
        python_warnings.warn("Plan.notes will go in the next version: use Plan.warnings.", DeprecationWarning, 2)
        return self.warnings

    def __getitem__(self, name: str) -> ComparisonRow:
        return self.table[name]

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values, for JSON; ``schedule_from_dict`` loads the schedules."""
        settings = {
            name: None if self.optimizer is None else getattr(self.training, name)
            for name in ("momentum", "nesterov", "weight_decay")
        }
        return {
            "verdict": self.verdict,
            "name": self.name,
            "label": self.label,
            "schedule": self.schedule.to_dict(),
            "lr": self.lr,
            "lr_range": list(self.lr_range),
            "lr_limit": self.lr_limit,
            "optimizer": self.optimizer,
            **settings,
            "batch_size": self.training.batch_size,
            "gap": self.gap,
            "table": [{**row.to_dict(), "schedule": row.schedule.to_dict()} for row in self.table.rows],
            "inputs": [vars(entry) for entry in self.inputs],
            "evidence": vars(self.evidence),
            "warnings": list(self.warnings),
        }

    def to_markdown(self) -> str:
        """The plan as Markdown, for a pull request or a lab notebook."""
        from eigencurve.planning.render import markdown

        return markdown(self)

    def to_html(self, command: str = "") -> str:
        """The plan as one self-contained HTML page, without scripts, for screen and print, light and dark.

        Args:
            command: Command line that made the plan, to show on the page.
        """
        from eigencurve.planning.render import html_page

        return html_page(self, command)

    def code(self, framework: str = "torch") -> str:
        """Python code that trains with the schedule.

        Args:
            framework: ``"torch"``, ``"lightning"``, ``"transformers"``, ``"keras"`` or ``"optax"``.
        """
        from eigencurve.planning.code import ScheduleCode, training_code

        return training_code(framework, ScheduleCode.from_numbers(self.schedule, self.training))

    def save(self, path: str | Path) -> None:
        """Write the plan to a file that ends in .html, .md, .json or .py.

        Args:
            path: Path of the file; an existing file is replaced.
        """
        from eigencurve.planning.render import save

        save(self, Path(path))

    def __str__(self) -> str:
        from eigencurve.planning.render import text

        return text(self)

    def _repr_html_(self) -> str:
        from eigencurve.planning.render import notebook

        return notebook(self)

    def __repr__(self) -> str:
        return f"Plan({self.name}, {self.schedule.total_steps:,} steps, peak rate {self.lr:.3g})"


def training_of(
    optimizer: str | None,
    momentum: float | None = None,
    nesterov: bool = False,
    weight_decay: float | None = None,
    batch_size: int | None = None,
    sources: Mapping[str, Source] | None = None,
) -> Training:
    """The settings of a run: the given ones, and the defaults in place of None.

    Args:
        optimizer: Optimizer. None is SGD, or an unknown one if nothing else about it is given.
        momentum: Momentum of SGD, by default 0; or β₁ of Adam, by default 0.9.
        nesterov: Whether it is Nesterov momentum.
        weight_decay: Weight decay, by default 0.
        batch_size: Batch size.
        sources: Where ``"optimizer"`` or ``"weight_decay"`` comes from, if not from the user.

    >>> training_of("adamw", weight_decay=0.1).assumed
    ['beta1 0.9']
    >>> training_of(None, batch_size=128).optimizer is None
    True
    """
    size = None if batch_size is None else _check.whole("plan", "batch_size", batch_size, minimum=1)
    if optimizer is None and momentum is None and weight_decay is None and not nesterov:
        return Training(batch_size=size)
    name = "sgd" if optimizer is None else _check.choice("plan", "optimizer", optimizer, OPTIMIZERS)
    decay = 0.0 if weight_decay is None else _check.at_least("plan", "weight_decay", weight_decay, 0.0)
    inertia = momentum_of(name, momentum)
    if nesterov and name != "sgd":
        _check.refuse("plan", "nesterov", "left out for Adam", nesterov, "Only SGD has Nesterov momentum here.")
    if nesterov and not inertia:
        _check.refuse("plan", "nesterov", "left out without momentum", nesterov, "Pass the momentum too, such as 0.9.")
    given = {"optimizer": optimizer, "momentum": momentum, "weight_decay": weight_decay}
    origin: dict[str, Source] = {key: "assumed" if value is None else "given" for key, value in given.items()}
    return Training(name, inertia, nesterov, decay, size, {**origin, **(sources or {})})


def momentum_of(optimizer: str, momentum: float | None) -> float:
    """The momentum of a run: the given one, or by default β₁ = 0.9 for Adam and 0 for SGD."""
    if momentum is None:
        return MOMENTUM if optimizer == "sgd" else BETA1
    value = _check.at_least("plan", "momentum", momentum, 0.0)
    if value >= 1:
        _check.refuse("plan", "momentum", "< 1", value)
    return value
