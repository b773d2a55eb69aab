"""What may mislead about a spectrum: one sentence with a remedy for each reason to doubt an answer."""

from __future__ import annotations

from eigencurve.planning.limits import metric_of
from eigencurve.planning.subject import Subject
from eigencurve.schedules.eigencurve import curve_of, decay_doubt
from eigencurve.spectrum.power_law import PowerLaw, fitted_law

# Up to this share, negative curvature is usual: the published spectra and those of the zoo have 21 to 49 %. Above one
# half the trace is negative.
USUAL_NEGATIVE = 0.5


def doubts(subject: Subject, total_steps: int | None = None, optimizer: str | None = None) -> tuple[str, ...]:
    """The warnings that a spectrum deserves, one sentence each.

    Args:
        subject: Spectrum, with what is known about its measurement.
        total_steps: Number of steps of an Eigencurve schedule without a final rate, if there is one.
        optimizer: Optimizer of that run, if it matters: ``"sgd"``, ``"adam"`` or ``"adamw"``.

    >>> from eigencurve.planning.subject import law_subject
    >>> for sentence in doubts(law_subject(alpha=1.5, kappa=1e6), total_steps=50):
    ...     print(sentence)
    The run of 50 steps is 20,000 times shorter than the condition number, so its Eigencurve schedule only falls to 91 % of its first rate. Set a final rate (min_lr), or ask `plan`.
    """  # noqa: E501 -- one line of output
    found = (
        settling_doubt(subject),
        negative_doubt(subject),
        "" if total_steps is None else length_doubt(subject, total_steps),
        exponent_doubt(subject) if isinstance(subject.raw, PowerLaw) else "",
        "" if optimizer is None else metric_doubt(subject, optimizer),
    )
    return tuple(sentence for sentence in found if sentence)


def settling_doubt(subject: Subject) -> str:
    """A sentence if the estimate has not settled, else an empty string."""
    return "" if subject.measurement is None else subject.measurement.warning


def negative_doubt(subject: Subject) -> str:
    """A sentence if most of the curvature is negative, or the largest of it, else an empty string.

    The schedule rests on the absolute values, and its largest stable rate on the largest of them.
    """
    raw, remedy = subject.raw, "Measure it later in training, or measure the Gauss-Newton matrix."
    if isinstance(raw, PowerLaw):
        return ""
    if raw.negative_share > USUAL_NEGATIVE:
        return (
            f"{100 * raw.negative_share:.0f} % of the curvature is negative, so no minimum is near, and the "
            f"absolute values that the answer is computed from mean little. {remedy}"
        )
    if -raw.mu > raw.L:
        return (
            f"The eigenvalue with the largest absolute value, {raw.mu:.4g}, is negative, and the largest stable rate "
            f"is computed from it. {remedy}"
        )
    return ""


def length_doubt(subject: Subject, total_steps: int) -> str:
    """A sentence if the run is so short that its Eigencurve schedule hardly decays, else an empty string."""
    spectrum = subject.spectrum
    return "" if spectrum.kappa <= 1 else decay_doubt(curve_of(subject.prepared, total_steps, lr=1.0), spectrum.kappa)


def exponent_doubt(subject: Subject) -> str:
    """A sentence if no power law fits the spectrum, so that its exponent means little; else an empty string."""
    if isinstance(subject.raw, PowerLaw):
        return subject.raw.warning
    try:
        return fitted_law(subject.spectrum).warning
    except ValueError:  # nearly equal eigenvalues have no exponent to doubt
        return ""


def metric_doubt(subject: Subject, optimizer: str) -> str:
    """A sentence if the spectrum was measured in the metric of another optimizer, else an empty string.

    A power law can be assumed in any metric.
    """
    metric = metric_of(subject)
    if isinstance(subject.raw, PowerLaw):
        return ""
    if optimizer == "sgd" and metric:
        return (
            f"The spectrum is that in the metric of {metric}, not for SGD: plan for {metric}, or measure it without "
            "--optimizer-state."
        )
    if optimizer != "sgd" and not metric:
        return (
            f"The spectrum is that of the plain Hessian, not in the metric of {optimizer}: measure it with "
            "--optimizer-state, or pass the logs of two runs to `eigencurve plan`."
        )
    return ""
