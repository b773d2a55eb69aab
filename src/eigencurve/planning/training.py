"""How a run trains: its optimizer with its settings, and where each comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eigencurve import _check

OPTIMIZERS = ("adam", "adamw", "sgd")
# β₁ of Adam, and the momentum of SGD, unless the run has others.
BETA1, MOMENTUM = 0.9, 0.0


@dataclass(frozen=True)
class Training:
    """The optimizer of a run and its settings; generated code contains these and no others.

    Attributes:
        optimizer: ``"sgd"``, ``"adam"`` or ``"adamw"``; None if it is not known, and the code uses that of the reader.
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
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

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


def training_of(
    optimizer: str | None,
    momentum: float | None = None,
    nesterov: bool = False,
    weight_decay: float | None = None,
    batch_size: int | None = None,
    sources: Mapping[str, str] | None = None,
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
    _require_momentum(name, inertia, nesterov)
    given = {"optimizer": optimizer, "momentum": momentum, "weight_decay": weight_decay}
    origin = {known: "assumed" if value is None else "given" for known, value in given.items()}
    return Training(name, inertia, nesterov, decay, size, {**origin, **(sources or {})})


def momentum_of(optimizer: str, momentum: float | None) -> float:
    """The momentum of a run: the given one, or by default β₁ = 0.9 for Adam and 0 for SGD."""
    if momentum is None:
        return MOMENTUM if optimizer == "sgd" else BETA1
    value = _check.at_least("plan", "momentum", momentum, 0.0)
    if value >= 1:
        _check.refuse("plan", "momentum", "< 1", value)
    return value


def _require_momentum(optimizer: str, momentum: float, nesterov: bool) -> None:
    if not nesterov:
        return
    if optimizer != "sgd":
        _check.refuse("plan", "nesterov", "left out for Adam", nesterov, "Only SGD has Nesterov momentum here.")
    if not momentum:
        _check.refuse("plan", "nesterov", "left out without momentum", nesterov, "Pass the momentum too, such as 0.9.")
