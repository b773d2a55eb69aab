"""What may mislead about a rate or a spectrum, with a remedy each; and the rates that nobody can mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eigencurve import _check
from eigencurve.planning.result import OPTIMIZERS, momentum_of
from eigencurve.schedules.units import Steps, whole_steps
from eigencurve.theory.stability import (
    ADAM_RATE_FORMULA,
    largest_stable_adam_rate,
    largest_stable_rate,
    stable_rate_formula,
)  # fmt: skip

if TYPE_CHECKING:
    from eigencurve.spectrum.source import SpectrumSource

# Networks often tolerate 10 to 100 times the largest stable rate of a spectrum measured late in a run.
MOST_ABOVE = 1000.0
# Higher rates cannot be meant: a step of Adam changes every weight by about the rate, and the largest rates in use with
# SGD, for recurrent networks with small gradients, are about 30.
HIGHEST = {"adam": 10.0, "adamw": 10.0, "sgd": 1000.0}
# A rate that is only rounded differently from the limit is not above it.
ROUNDING = 1e-3
# Up to this share, negative curvature is usual: the published spectra and those of the zoo have 21 to 49 %. Above one
# half the trace is negative.
USUAL_NEGATIVE = 0.5


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
        >>> print(limit.about(0.1).split(";")[0])
        0.1 is 15 times the stability limit 2/L = 0.0067 of this spectrum
        """
        if rate is None or self.allows(rate):
            return str(self)
        return (
            f"{rate:.4g} is {_times(rate / self.rate)} times the stability limit {self.formula} = {self.rate:.3g} of "
            "this spectrum; networks often tolerate that, the quadratic model does not"
        )

    def sentence(self, rate: float) -> str:
        """A sentence about a peak rate.

        >>> RateLimit(0.2, "2/L").sentence(0.05)
        'Peak rate 0.05; largest stable rate 2/L = 0.2.'
        """
        return f"Peak rate {rate:.4g}; {self}." if self.allows(rate) else f"Peak rate {self.about(rate)}."

    def __str__(self) -> str:
        return f"largest stable rate {self.formula} = {self.rate:.3g}"


def rate_limit(
    source: SpectrumSource, optimizer: str | None = None, momentum: float | None = None, nesterov: bool = False
) -> RateLimit:
    """The largest stable learning rate of an optimizer on the quadratic with a given spectrum.

    Args:
        source: Spectrum, and the metric that it was measured in.
        optimizer: ``"sgd"``, ``"adam"`` or ``"adamw"``. By default the one in whose metric the spectrum was measured.
        momentum: Momentum of SGD, or β₁ of Adam. By default 0 for SGD and 0.9 for Adam.
        nesterov: Whether SGD has Nesterov momentum.

    >>> from eigencurve.spectrum.source import law_source
    >>> law = law_source(alpha=1.5, kappa=1e4, weight_decay=1e-3)  # L = 10
    >>> print(rate_limit(law))
    largest stable rate 2/L = 0.2
    >>> print(rate_limit(law, "adamw"))
    largest stable rate (2+2β₁)/((1-β₁)L) = 3.8
    """
    name = source.optimizer if optimizer is None else _check.choice("plan", "optimizer", optimizer, OPTIMIZERS)
    largest, inertia = source.spectrum.L, momentum_of(name, momentum)
    if name != "sgd":
        return RateLimit(largest_stable_adam_rate(largest, inertia), ADAM_RATE_FORMULA)
    return RateLimit(largest_stable_rate(largest, inertia, nesterov), stable_rate_formula(inertia, nesterov))


def checked_run(
    total_steps: Steps, lr: float | None, max_lr: float | None, warmup_steps: int | None
) -> tuple[int, float | None, float | None, int | None]:
    """The length, the peak rate, the highest rate and the warmup of a run, checked against each other."""
    steps = whole_steps("plan", "total_steps", total_steps, minimum=2)
    rate = None if lr is None else _check.positive("plan", "lr", lr)
    highest = None if max_lr is None else _check.positive("plan", "max_lr", max_lr)
    if rate is not None and highest is not None and rate > highest:
        _check.refuse("plan", "lr", f"<= max_lr = {highest:g}", rate, "Leave one of the two out.")
    rise = None if warmup_steps is None else _check.whole("plan", "warmup_steps", warmup_steps, minimum=0)
    if rise is not None and rise >= steps:
        _check.refuse("plan", "warmup_steps", f"< total_steps = {steps}", rise)
    return steps, rate, highest, rise


def require_plausible(
    function: str, optimizer: str | None, limit: RateLimit | None = None, **rates: float | None
) -> None:
    """Refuse a learning rate that nobody can mean, such as 1e9.

    Args:
        function: Name of the function, for the message.
        optimizer: Optimizer of the run; None if it is not known.
        limit: Limit of stability of the spectrum, if there is one.
        **rates: Rates by the name of their argument; None is not checked.
    """
    if limit is None:
        highest = HIGHEST[optimizer or "sgd"]
        constraint = f"<= {highest:g} for {optimizer or 'any optimizer'}"
        remedy = "Find the rate that your model tolerates with a range test."
    else:
        highest = MOST_ABOVE * limit.rate
        constraint = f"<= {MOST_ABOVE:,.0f} times the stability limit {limit.formula} = {limit.rate:.3g}"
        remedy = "Networks tolerate rates 10 to 100 times above it; find yours with a range test."
    for name, rate in rates.items():
        if rate is not None and rate > highest:
            _check.refuse(function, name, constraint, rate, remedy)


def spectrum_warnings(
    source: SpectrumSource, total_steps: int | None = None, optimizer: str | None = None
) -> tuple[str, ...]:
    """The warnings that a spectrum deserves, one sentence with a remedy each.

    Args:
        source: Spectrum, with what is known about its measurement.
        total_steps: Number of steps of an Eigencurve schedule without a final rate, if there is one.
        optimizer: Optimizer of that run, if it matters: ``"sgd"``, ``"adam"`` or ``"adamw"``.

    >>> from eigencurve.spectrum.source import law_source
    >>> for sentence in spectrum_warnings(law_source(alpha=1.5, kappa=1e6), total_steps=50):
    ...     print(sentence.split(",")[0])
    The run of 50 steps is 20
    """
    sentences = (
        settling_warning(source),
        negative_warning(source),
        "" if total_steps is None else length_warning(source, total_steps),
        exponent_warning(source) if source.is_law else "",
        "" if optimizer is None else metric_warning(source, optimizer),
    )
    return tuple(filter(None, sentences))


def settling_warning(source: SpectrumSource) -> str:
    """A sentence if the estimate has not settled, else an empty string."""
    return "" if source.measurement is None else source.measurement.warning


def negative_warning(source: SpectrumSource) -> str:
    """A sentence if most of the curvature is negative, or the largest of it, else an empty string.

    The schedule rests on the absolute values, and its largest stable rate on the largest of them.
    """
    raw, remedy = source.raw, "Measure it later in training, or measure the Gauss-Newton matrix."
    share = getattr(raw, "negative_share", 0.0)  # a power law has none
    if share > USUAL_NEGATIVE:
        return (
            f"{100 * share:.0f} % of the curvature is negative, so no minimum is near, and the "
            f"absolute values that the answer is computed from mean little. {remedy}"
        )
    if -raw.mu > raw.L:
        return (
            f"The eigenvalue with the largest absolute value, {raw.mu:.4g}, is negative, and the largest stable rate "
            f"is computed from it. {remedy}"
        )
    return ""


def length_warning(source: SpectrumSource, total_steps: int) -> str:
    """A sentence if the run is so short that its Eigencurve schedule hardly decays, else an empty string."""
    from eigencurve.schedules.eigencurve import curve_of, decay_doubt

    kappa = source.spectrum.kappa
    return "" if kappa <= 1 else decay_doubt(curve_of(source.prepared, total_steps, lr=1.0), kappa)


def exponent_warning(source: SpectrumSource) -> str:
    """A sentence if no power law fits the spectrum, so that its exponent means little; else an empty string."""
    from eigencurve.spectrum.power_law import PowerLaw, fitted_law

    if isinstance(source.raw, PowerLaw):
        return source.raw.warning
    try:
        return fitted_law(source.spectrum).warning
    except ValueError:  # nearly equal eigenvalues have no exponent
        return ""


def metric_warning(source: SpectrumSource, optimizer: str) -> str:
    """A sentence if the spectrum was measured in the metric of another optimizer, else an empty string.

    A power law can be assumed in any metric.
    """
    if source.is_law:
        return ""
    if optimizer == "sgd" and source.metric:
        return (
            f"The spectrum was measured in the metric of {source.metric}, not for SGD: plan for {source.metric}, or "
            "measure it without `--optimizer-state`."
        )
    if optimizer != "sgd" and not source.metric:
        return (
            f"The spectrum is that of the plain Hessian, not in the metric of {optimizer}: measure it with "
            "`--optimizer-state`, or pass the logs of two runs to `eigencurve plan`."
        )
    return ""


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= 1.1 else f"{ratio:.2f}"
