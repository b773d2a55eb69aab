"""The largest stable learning rate of a spectrum for an optimizer, and what to say about a rate."""

from __future__ import annotations

from dataclasses import dataclass

from eigencurve import _check
from eigencurve.planning.subject import Subject
from eigencurve.planning.training import OPTIMIZERS, momentum_of
from eigencurve.theory.stability import (
    ADAM_RATE_FORMULA,
    largest_stable_adam_rate,
    largest_stable_rate,
    stable_rate_formula,
)  # fmt: skip

# Networks often tolerate 10 to 100 times the largest stable rate of a spectrum measured late in a run.
MOST_ABOVE = 1000.0
# Higher rates cannot be meant: a step of Adam changes every weight by about the rate, and the largest rates in use with
# SGD, for recurrent networks with small gradients, are about 30.
HIGHEST = {"adam": 10.0, "adamw": 10.0, "sgd": 1000.0}
# A rate that is only rounded differently from the limit is not above it.
ROUNDING = 1e-3


@dataclass(frozen=True)
class RateLimit:
    """The limit of stability of an optimizer on a quadratic with a given spectrum; ``print`` shows one clause.

    Attributes:
        rate: Largest stable learning rate.
        formula: Its formula as text, such as ``"2/L"``.
    """

    rate: float
    formula: str

    def allows(self, rate: float) -> bool:
        """Whether a learning rate is stable."""
        return rate <= (1 + ROUNDING) * self.rate

    def about(self, rate: float | None) -> str:
        """A clause about a learning rate: the limit, and how far the rate is above it if it is.

        >>> limit = RateLimit(0.0067, "2/L")
        >>> limit.about(0.005)
        'largest stable rate 2/L = 0.0067'
        >>> print(limit.about(0.1))
        0.1 is 15 times the stability limit 2/L = 0.0067 of this spectrum; networks often tolerate that, the quadratic model does not
        """  # noqa: E501 -- one line of output
        if rate is None or self.allows(rate):
            return str(self)
        return (
            f"{rate:.4g} is {_times(rate / self.rate)} times the stability limit {self.formula} = {self.rate:.3g} of "
            "this spectrum; networks often tolerate that, the quadratic model does not"
        )

    def __str__(self) -> str:
        return f"largest stable rate {self.formula} = {self.rate:.3g}"


def rate_limit(
    subject: Subject, optimizer: str | None = None, momentum: float | None = None, nesterov: bool = False
) -> RateLimit:
    """The largest stable learning rate of an optimizer on the quadratic with the subject's spectrum.

    Args:
        subject: Spectrum, and the metric that it was measured in.
        optimizer: ``"sgd"``, ``"adam"`` or ``"adamw"``. By default the one in whose metric the spectrum was measured.
        momentum: Momentum of SGD, or β₁ of Adam. By default 0 for SGD and 0.9 for Adam.
        nesterov: Whether SGD has Nesterov momentum.

    >>> from eigencurve.planning.subject import law_subject
    >>> law = law_subject(alpha=1.5, kappa=1e4, weight_decay=1e-3)  # L = 10
    >>> print(rate_limit(law))
    largest stable rate 2/L = 0.2
    >>> print(rate_limit(law, "adamw"))
    largest stable rate (2+2β₁)/((1-β₁)L) = 3.8
    """
    name = optimizer_of(subject) if optimizer is None else _check.choice("plan", "optimizer", optimizer, OPTIMIZERS)
    largest, inertia = subject.spectrum.L, momentum_of(name, momentum)
    if name != "sgd":
        return RateLimit(largest_stable_adam_rate(largest, inertia), ADAM_RATE_FORMULA)
    return RateLimit(largest_stable_rate(largest, inertia, nesterov), stable_rate_formula(inertia, nesterov))


def require_rates(function: str, lr: float | None, max_lr: float | None) -> tuple[float | None, float | None]:
    """A given peak rate and highest rate, checked against each other."""
    rate = None if lr is None else _check.positive(function, "lr", lr)
    highest = None if max_lr is None else _check.positive(function, "max_lr", max_lr)
    if rate is not None and highest is not None and rate > highest:
        _check.refuse(function, "lr", f"<= max_lr = {highest:g}", rate, "Leave one of the two out.")
    return rate, highest


def require_meant(function: str, optimizer: str | None, limit: RateLimit | None = None, **rates: float | None) -> None:
    """Refuse a learning rate that nobody can mean, such as 1e9.

    Args:
        function: Name of the function, for the message.
        optimizer: Optimizer of the run; None if it is not known.
        limit: Limit of stability of the spectrum, if there is one.
        **rates: Rates by the name of their argument; None is not checked.
    """
    for name, rate in rates.items():
        if rate is None:
            continue
        if limit is not None and rate > MOST_ABOVE * limit.rate:
            constraint = f"<= {MOST_ABOVE:,.0f} times the stability limit {limit.formula} = {limit.rate:.3g}"
            remedy = "Networks tolerate rates 10 to 100 times above it; find yours with a range test."
            _check.refuse(function, name, constraint, rate, remedy)
        kind = optimizer or "sgd"
        if limit is None and rate > HIGHEST[kind]:
            constraint = f"<= {HIGHEST[kind]:g} for {kind if optimizer else 'any optimizer'}"
            _check.refuse(
                function, name, constraint, rate, "Find the rate that your model tolerates with a range test."
            )


def metric_of(subject: Subject) -> str:
    """The optimizer in whose metric the spectrum was measured, such as ``"AdamW"``; empty for the Hessian itself."""
    return "" if subject.measurement is None else subject.measurement.preconditioner


def optimizer_of(subject: Subject) -> str:
    """The optimizer that a spectrum is for: Adam or AdamW if it was measured in their metric, else SGD."""
    name = metric_of(subject).lower()
    return name if name in OPTIMIZERS else "sgd"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= 1.1 else f"{ratio:.2f}"
