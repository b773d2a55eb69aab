"""A schedule under Hugging Face accelerate: one step per update, whatever the processes and the accumulation.

What ``accelerator.prepare`` makes of a scheduler steps once per *process* for each update (unless batches are
split), and not at all where mixed precision skipped one. :func:`prepare_schedule` steps once per update, as everywhere
else in this package, so the total number of steps is that of the updates.
"""

from __future__ import annotations

from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule

try:
    from accelerate import Accelerator
    from accelerate.scheduler import AcceleratedScheduler
except ImportError as error:
    raise ImportError("eigencurve.adapters.accelerate needs accelerate: pip install eigencurve[accelerate]") from error

from torch.optim import Optimizer

from eigencurve.adapters.torch import ScheduleLR

__all__ = ["ScheduleLR", "UpdateScheduler", "prepare_schedule"]


class UpdateScheduler(AcceleratedScheduler):
    """A :class:`ScheduleLR` among an accelerator's schedulers. Made by :func:`prepare_schedule`."""

    scheduler: ScheduleLR
    # Tells the accelerator to keep it as it is.
    _is_accelerate_prepared = True

    def step(self, *args: Any, **kwargs: Any) -> None:
        """Go on to the next step if this call ends an update; microbatches before its last one do not count."""
        if self.gradient_state.sync_gradients:
            self.scheduler.step(*args, **kwargs)

    def extend(self, schedule: Schedule) -> None:
        """Go on from the current step with another schedule; see :meth:`ScheduleLR.extend`."""
        self.scheduler.extend(schedule)


def prepare_schedule(
    accelerator: Accelerator, optimizer: Optimizer, schedule: Schedule, on_resume: str = "refuse"
) -> UpdateScheduler:
    """The scheduler of ``optimizer``, registered with ``accelerator`` as ``accelerator.prepare`` would.

    Call its ``step`` wherever ``optimizer.step`` is called, also within ``accelerator.accumulate``: it counts once per
    update. ``accelerator.save_state`` and ``load_state`` save and restore it.

    Args:
        accelerator: any number of processes, any accumulation, split batches or not.
        optimizer: before or after ``accelerator.prepare``.
        schedule: its ``total_steps`` are updates: with the *prepared* loader, ``ceil(len(loader) / accumulation)`` an
            epoch.
        on_resume: as in :class:`ScheduleLR`.
    """
    if not isinstance(accelerator, Accelerator):
        raise TypeError(_check.sentence("prepare_schedule", "accelerator", "an accelerate.Accelerator", accelerator))
    bare = getattr(optimizer, "optimizer", optimizer)
    scheduler = UpdateScheduler(ScheduleLR(bare, schedule, on_resume=on_resume), optimizer)
    kept: UpdateScheduler = accelerator.prepare_scheduler(scheduler)
    if kept is not scheduler:
        need = "a version of accelerate that keeps a prepared scheduler as it is"
        _check.refuse("prepare_schedule", "accelerator", need, type(kept).__name__)
    return kept
