"""The settings of the page as one frozen value, and their encoding in the page's address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from eigencurve import _check
from eigencurve.planning.code import FRAMEWORKS
from eigencurve.planning.loss_view import SCALES
from eigencurve.schedules.eigencurve import ALLOCATIONS
from eigencurve.spectrum.zoo import ZOO

SOURCES = ("zoo", "power_law", "upload")
KINDS = (
    "eigencurve", "cosine", "linear", "step_decay", "elastic_step", "cosine_power", "exponential", "inverse_time",
    "wsd", "wsd_sqrt", "constant", "wsd_cycles", "one_cycle", "inverse_sqrt", "polynomial", "rex",
)  # fmt: skip
AXES = ("linear", "log")
# The schedules that do best on most spectra, and the most common one.
USUAL_KINDS = ("eigencurve", "linear", "wsd", "wsd_sqrt", "elastic_step", "cosine")
# There are only so many colours and dashes that everybody can tell apart.
MOST_SCHEDULES = 8
MOST_STEPS = 10_000_000
MOST_MOMENTUM = 0.999


@dataclass(frozen=True)
class Settings:
    """Settings of the page, validated on construction.

    Attributes:
        source: Where the spectrum comes from; one of ``SOURCES``.
        zoo: Name of a spectrum of the zoo.
        alpha, kappa: Exponent and condition number of a power law.
        weight_decay: Weight decay, added to every eigenvalue; for a power law, its smallest eigenvalue.
        epochs, steps_per_epoch: Length of the run; their product is T.
        lr: Initial learning rate.
        min_lr: Final learning rate, or None for the default of each schedule.
        beta: Ratio of the edges of a group; 1 is the limit of fine groups.
        allocation: How steps are divided among groups, ``"sqrt"`` or ``"optimal"``.
        noise: Gradient noise σ² of the quadratic, or None for the measured one; if there is none, it is assumed.
        momentum: Momentum of SGD, on the quadratic and in the generated code.
        nesterov: Whether it is Nesterov momentum; otherwise heavy ball.
        scale: Peak rate on the quadratic: ``"best"`` for each schedule, half the largest stable rate, which is the
            ``"theory"``'s 1/L without momentum, or as ``"given"``.
        schedules: Kinds of schedules to draw.
        best: Whether to search for the numerically best schedule.
        axis: Time axis, ``"linear"`` or ``"log"``.
        framework: Framework of the generated code.

    Raises:
        TypeError, ValueError: If a value is out of range, or if two values contradict each other.
    """

    source: str = "zoo"
    zoo: str = "resnet20_cifar10"
    alpha: float = 1.5
    kappa: float = 1e5
    weight_decay: float = 5e-4
    epochs: int = 100
    steps_per_epoch: int = 391
    lr: float = 0.1
    min_lr: float | None = None
    beta: float = 2.0
    allocation: str = "sqrt"
    noise: float | None = None
    momentum: float = 0.0
    nesterov: bool = False
    scale: str = "best"
    schedules: tuple[str, ...] = USUAL_KINDS
    best: bool = False
    axis: str = "linear"
    framework: str = "torch"

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        for clash in CLASHES.values():
            if sentence := clash(vars(self)):
                raise ValueError(sentence)

    @property
    def total_steps(self) -> int:
        """Total number of steps T."""
        return self.epochs * self.steps_per_epoch


def to_params(settings: Settings) -> dict[str, str]:
    """Encode the settings that differ from the defaults as query parameters of the address.

    >>> to_params(Settings(lr=0.3, schedules=("cosine", "linear")))
    {'lr': '0.3', 'schedules': 'cosine,linear'}
    """
    usual = Settings()
    return {
        field.name: _written(getattr(settings, field.name))
        for field in fields(settings)
        if getattr(settings, field.name) != getattr(usual, field.name)
    }


def from_params(params: Mapping[str, str]) -> tuple[Settings, tuple[str, ...]]:
    """Decode query parameters, and return a message for each invalid one, which falls back to its default.

    >>> settings, messages = from_params({"lr": "fast", "epochs": "10"})
    >>> settings.lr, settings.epochs, messages
    (0.1, 10, ("studio: 'lr' must be a number, got 'fast'. The default is used.",))
    """
    usual = vars(Settings())
    values, messages = dict(usual), []
    for name, text in params.items():
        try:
            values[name] = _read(name, text)
        except (TypeError, ValueError) as error:
            messages.append(f"{error} The default is used." if name in CHECKS else str(error))
    for names, clash in CLASHES.items():
        if sentence := clash(values):
            messages.append(f"{sentence} The defaults are used.")
            values.update({name: usual[name] for name in names})
    return Settings(**values), tuple(messages)


def _written(value: Any) -> str:
    if value is None:
        return "free"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def _read(name: str, text: str) -> Any:
    """Decode what :func:`_written` encoded."""
    if name not in CHECKS:
        raise ValueError(f"studio: there is no setting {_check.shown(name)}. It is ignored.")
    usual = getattr(Settings, name)
    if name in ("min_lr", "noise"):
        return CHECKS[name](name, None if text == "free" else _number(name, text, float))
    if isinstance(usual, bool):
        return CHECKS[name](name, {"0": False, "1": True}.get(text, text))
    if isinstance(usual, tuple):
        return CHECKS[name](name, tuple(part for part in text.split(",") if part))
    if isinstance(usual, int | float):
        return CHECKS[name](name, _number(name, text, type(usual)))
    return CHECKS[name](name, text)


def _number(name: str, text: str, kind: type[int] | type[float]) -> float:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise _check.ArgumentValueError("studio", name, what, text) from None


def _one_of(options: tuple[str, ...]) -> Callable[[str, Any], str]:
    return lambda name, value: _check.choice("studio", name, value, options)


def _between(low: float, high: float) -> Callable[[str, Any], float]:
    def check(name: str, value: Any) -> float:
        number = _check.real("studio", name, value)
        if not low <= number <= high:
            _check.refuse("studio", name, f"between {low:g} and {high:g}", number)
        return number

    return check


def _count(high: int) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        number = _check.whole("studio", name, value, minimum=1)
        if number > high:
            _check.refuse("studio", name, f"at most {high:,}", number)
        return number

    return check


def _none_or_up_to(high: float) -> Callable[[str, Any], float | None]:
    return lambda name, value: None if value is None else _between(0.0, high)(name, value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        _check.wrong_type("studio", name, "0 or 1", value)
    return value


def _kinds(name: str, value: Any) -> tuple[str, ...]:
    kinds = tuple(_check.choice("studio", name, kind, KINDS) for kind in value)
    if not 1 <= len(kinds) <= MOST_SCHEDULES or len(set(kinds)) < len(kinds):
        _check.refuse("studio", name, f"1 to {MOST_SCHEDULES} different kinds", ",".join(kinds))
    return kinds


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "source": _one_of(SOURCES),
    "zoo": _one_of(tuple(ZOO)),
    "alpha": _between(-1.0, 4.0),
    "kappa": _between(1.001, 1e15),
    "weight_decay": _between(0.0, 1e3),
    "epochs": _count(MOST_STEPS),
    "steps_per_epoch": _count(MOST_STEPS),
    "lr": _between(1e-12, 1e6),
    "min_lr": _none_or_up_to(1e6),
    "beta": _between(1.0, 1e6),
    "allocation": _one_of(ALLOCATIONS),
    "noise": _none_or_up_to(1e12),
    "momentum": _between(0.0, MOST_MOMENTUM),
    "nesterov": _flag,
    "scale": _one_of(SCALES),
    "schedules": _kinds,
    "best": _flag,
    "axis": _one_of(AXES),
    "framework": _one_of(FRAMEWORKS),
}


def _too_long(values: Mapping[str, Any]) -> str | None:
    total = values["epochs"] * values["steps_per_epoch"]
    constraint = f"at most {MOST_STEPS:,} steps in all"
    return str(_check.ArgumentValueError("studio", "epochs", constraint, total)) if total > MOST_STEPS else None


def _rising(values: Mapping[str, Any]) -> str | None:
    least, lr = values["min_lr"], values["lr"]
    return (
        None
        if least is None or least <= lr
        else str(_check.ArgumentValueError("studio", "min_lr", f"<= lr = {lr:g}", least))
    )


def _law_without_decay(values: Mapping[str, Any]) -> str | None:
    if values["source"] != "power_law" or values["weight_decay"] > 0:
        return None
    remedy = "It is the smallest eigenvalue of the power law."
    return str(
        _check.ArgumentValueError("studio", "weight_decay", "> 0 for a power law", values["weight_decay"], remedy)
    )


def _nesterov_without_momentum(values: Mapping[str, Any]) -> str | None:
    if not values["nesterov"] or values["momentum"] > 0:
        return None
    return str(_check.ArgumentValueError("studio", "momentum", "> 0 with nesterov=1", values["momentum"]))


CLASHES: dict[tuple[str, ...], Callable[[Mapping[str, Any]], str | None]] = {
    ("epochs", "steps_per_epoch"): _too_long,
    ("lr", "min_lr"): _rising,
    ("weight_decay",): _law_without_decay,
    ("momentum", "nesterov"): _nesterov_without_momentum,
}
