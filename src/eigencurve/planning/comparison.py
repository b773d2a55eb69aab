"""Compare schedules on a spectrum by the loss each is expected to reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eigencurve import _check
from eigencurve.planning.inputs import Inputs, inputs_of, quadratic_of
from eigencurve.planning.subject import Subject
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.comparison import ComparisonTable
from eigencurve.schedules.kinds import describe_settings
from eigencurve.theory.candidates import usual_schedules

NUMERICALLY_BEST = "numerically best"


def compare_schedules(
    subject: Subject,
    total_steps: int,
    inputs: Inputs | None = None,
    momentum: float = 0.0,
    nesterov: bool = False,
    lr: float | None = None,
    max_lr: float | None = None,
    best: bool = False,
    own: Mapping[str, Schedule] | None = None,
) -> ComparisonTable:
    """Compare the common schedules, and any of your own, on the noisy quadratic with the subject's spectrum.

    Args:
        subject: Spectrum to compare on.
        total_steps: Number of steps T of every schedule.
        inputs: Gradient noise and start of the run. With None, those measured with the spectrum, or else assumed.
        momentum: Momentum of SGD.
        nesterov: Whether it is Nesterov momentum; otherwise heavy ball.
        lr: Peak learning rate of all schedules. With None, each schedule runs at its own best peak rate.
        max_lr: Largest learning rate allowed. With None, it is the largest stable one, or ``lr`` if that is higher.
        best: Whether to search for the numerically best schedule as well.
        own: Further schedules of T steps, by name. Their rates stay unchanged if you pass ``lr``; otherwise they are
            tuned like the others.
    """
    problem = quadratic_of(subject, inputs or inputs_of(subject), momentum, nesterov)
    limit = problem.stable_rate if max_lr is None else max_lr
    peak = limit if lr is None else _check.positive("compare", "lr", lr)
    schedules = {**usual_schedules(subject.spectrum, total_steps, peak), **(own or {})}
    compared = problem.compare(schedules, max_lr, tune_lr=lr is None)
    if not best:
        return compared
    found = problem.search_best(total_steps, compared.max_lr or limit).schedule
    with_best = {**{row.name: row.schedule for row in compared.rows}, NUMERICALLY_BEST: found}
    return problem.compare(with_best, compared.max_lr)


def comparison_fields(compared: ComparisonTable, inputs: Inputs) -> dict[str, Any]:
    """Convert a comparison and what it is based on to plain values, ready for JSON."""
    return {
        **inputs.fields(),
        "total_steps": compared.total_steps,
        "max_lr": compared.max_lr,
        "lower_bound": compared.lower_bound,
        "rows": [
            {
                "name": row.name,
                "status": "diverged" if row.diverged else "finite",
                "peak_lr": row.peak_lr,
                "loss": row.loss,
                "bias": row.bias,
                "variance": row.variance,
                "gap": row.gap,
                "settings": describe_settings(row.schedule),
            }
            for row in compared.rows
        ],
    }


def settings_text(compared: ComparisonTable) -> str:
    """The settings of each row, one line per schedule, apart from its length and its peak rate."""
    width = max(12, *(len(row.name) for row in compared.rows))
    lines = [f"{row.name:<{width}} {describe_settings(row.schedule)}" for row in compared.rows]
    return "\n".join([f"{'settings':<{width}} (Eigencurve has beta=2)", *lines])
