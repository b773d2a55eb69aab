"""prepare_schedule: a schedule under Hugging Face accelerate that advances once per optimizer update.

A scheduler wrapped by ``accelerator.prepare`` advances once per *process* for each update (unless batches are split),
and does not advance when mixed precision skips an update. :func:`prepare_schedule` advances once per update, for any
number of processes and accumulation steps, so ``total_steps`` counts updates as everywhere else in this package.
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
    """A :class:`ScheduleLR` wrapped for an accelerator; create it with :func:`prepare_schedule`."""

    scheduler: ScheduleLR
    # Tells the accelerator not to wrap it again.
    _is_accelerate_prepared = True

    def step(self, *args: Any, **kwargs: Any) -> None:
        """Advance to the next step after the last microbatch of an update; other calls have no effect."""
        if self.gradient_state.sync_gradients:
            self.scheduler.step(*args, **kwargs)

    def extend(self, schedule: Schedule) -> None:
        """Continue from the current step with another schedule; see :meth:`ScheduleLR.extend`."""
        self.scheduler.extend(schedule)


def prepare_schedule(
    accelerator: Accelerator, optimizer: Optimizer, schedule: Schedule, on_resume: str = "refuse"
) -> UpdateScheduler:
    """Create the scheduler of ``optimizer`` and register it with ``accelerator``.

    Call its ``step`` after every ``optimizer.step``, also within ``accelerator.accumulate``: it advances once per
    update. ``accelerator.save_state`` and ``load_state`` save and restore it.

    Args:
        accelerator: Accelerator with any number of processes and accumulation steps, with or without split batches.
        optimizer: Optimizer, before or after ``accelerator.prepare``.
        schedule: Schedule whose ``total_steps`` count updates. An epoch has ``ceil(len(loader) / accumulation)`` of
            them, with the *prepared* loader.
        on_resume: What to do with the saved state of a different schedule; see :class:`ScheduleLR`.
    """
    if not isinstance(accelerator, Accelerator):
        raise TypeError(_check.sentence("prepare_schedule", "accelerator", "an accelerate.Accelerator", accelerator))
    bare = getattr(optimizer, "optimizer", optimizer)
    scheduler = UpdateScheduler(ScheduleLR(bare, schedule, on_resume=on_resume), optimizer)
    kept: UpdateScheduler = accelerator.prepare_scheduler(scheduler)
    if kept is not scheduler:
        need = "of a version of accelerate that does not wrap a prepared scheduler again"
        _check.refuse("prepare_schedule", "accelerator", need, type(kept).__name__)
    return kept
