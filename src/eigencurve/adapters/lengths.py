"""Warnings about runs that do not fit their schedule."""

from __future__ import annotations

import warnings

from eigencurve.adapters.groups import Schedules, distinct


def warn_of_length(function: str, schedules: Schedules, num_steps: int, remedy: str) -> None:
    """Warn if a schedule has another number of steps than the run.

    Args:
        function: Name of the adapter, for the warning.
        schedules: Schedules of the run.
        num_steps: Number of optimizer steps that the trainer will have taken at the end of the run.
        remedy: What to do about it.
    """
    for length in sorted({schedule.total_steps for schedule in distinct(schedules)} - {num_steps}):
        if length < num_steps:
            effect = f"the last {num_steps - length} steps keep the schedule's last rate"
        else:
            effect = "training ends before the rate has reached the end of the schedule"
        warnings.warn(
            f"{function}: the schedule has {length} steps, but the trainer takes {num_steps}: {effect}. {remedy}",
            stacklevel=3,
        )


def warn_of_no_measurement(at_epoch: int, num_epochs: int) -> None:
    """Warn that a run has no epoch ``at_epoch``, at whose start the spectrum would be measured."""
    warnings.warn(
        f"MeasureSchedule: at_epoch={at_epoch} is beyond the run, which has {num_epochs} epochs (the first is 0), so "
        f"the spectrum is never measured and the rate does not decay. Set at_epoch <= {max(num_epochs - 1, 0)}.",
        stacklevel=3,
    )
