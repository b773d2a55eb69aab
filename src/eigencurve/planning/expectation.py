"""What each schedule is expected to reach on a spectrum, beside what none can beat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eigencurve import _check
from eigencurve.planning.subject import Subject
from eigencurve.schedules.base import Schedule
from eigencurve.theory.candidates import usual_schedules
from eigencurve.theory.comparison import Comparison
from eigencurve.theory.quadratic import NoisyQuadratic

BEST = "numerically best"


def expect(
    subject: Subject,
    total_steps: int,
    noise: float = 1.0,
    initial_error: float = 1.0,
    momentum: float = 0.0,
    lr: float | None = None,
    max_lr: float | None = None,
    best: bool = False,
    own: Mapping[str, Schedule] | None = None,
) -> Comparison:
    """Compare the usual schedules, and more, on the noisy quadratic of a subject's spectrum.

    Args:
        subject: whose spectrum it is.
        total_steps: T.
        noise: σ².
        initial_error: λ_j (w_0j - w_*j)² of every coordinate.
        momentum: of heavy-ball SGD.
        lr: the peak rate of all; None takes each at its own best rate.
        max_lr: the largest rate allowed; None for 2 (1 + m)/L, or ``lr`` where that is higher.
        best: whether to search the numerically best schedule; not with momentum.
        own: further schedules of T steps, taken as they are in rate where ``lr`` is given, tuned like the others else.
    """
    problem = NoisyQuadratic(subject.spectrum, noise, initial_error, momentum)
    limit = 2 * (1 + momentum) / subject.spectrum.L if max_lr is None else max_lr
    peak = limit if lr is None else _check.positive("compare", "lr", lr)
    schedules = {**usual_schedules(subject.spectrum, total_steps, peak), **(own or {})}
    compared = problem.compare(schedules, max_lr, tune_lr=lr is None)
    if not best:
        return compared
    found = problem.search_best(total_steps, compared.max_lr).schedule
    return problem.compare({**{row.name: row.schedule for row in compared.rows}, BEST: found}, compared.max_lr)


def comparison_fields(compared: Comparison) -> dict[str, Any]:
    """A comparison as plain values."""
    return {
        "total_steps": compared.total_steps,
        "max_lr": compared.max_lr,
        "lower_bound": compared.lower_bound,
        "rows": [
            {
                "name": row.name, "status": row.status, "peak_lr": row.peak, "loss": row.loss, "bias": row.bias,
                "variance": row.variance, "gap": row.gap,
            }
            for row in compared.rows
        ],
    }  # fmt: skip
