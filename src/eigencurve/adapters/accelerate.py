"""prepare_schedule: a schedule under Hugging Face accelerate that advances once per optimizer update.

A scheduler wrapped by ``accelerator.prepare`` advances once per *process* for each update (unless batches are split),
and does not advance when mixed precision skips an update. :func:`prepare_schedule` advances once per update, for any
number of processes and accumulation steps, so ``total_steps`` counts updates as everywhere else in this package.
"""

from __future__ import annotations

from typing import Any

from eigencurve import _check
from eigencurve.adapters.groups import Schedules, warn_of_length

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

    def join_new_groups(self) -> None:
        """Let the groups that were added to the optimizer join at once; see :meth:`ScheduleLR.join_new_groups`."""
        self.scheduler.join_new_groups()

    def extend(self, schedule: Schedules, rewarm: int | None = None) -> None:
        """Continue from the current step with another schedule; see :meth:`ScheduleLR.extend`."""
        self.scheduler.extend(schedule, rewarm)

    def cooldown(self, from_step: int | None = None, **settings: Any) -> None:
        """Let the rate decay from ``from_step`` on; see :meth:`ScheduleLR.cooldown`."""
        self.scheduler.cooldown(from_step, **settings)


def prepare_schedule(
    accelerator: Accelerator,
    optimizer: Optimizer,
    schedule: Schedules,
    on_resume: str = "refuse",
    scale_weight_decay: bool = False,
    num_steps: int | None = None,
) -> UpdateScheduler:
    """Create the scheduler of ``optimizer`` and register it with ``accelerator``.

    Call its ``step`` after every ``optimizer.step``, also within ``accelerator.accumulate``: it advances once per
    update. ``accelerator.save_state`` and ``load_state`` save and restore it.

    Args:
        accelerator: Accelerator with any number of processes and accumulation steps, with or without split batches.
        optimizer: Optimizer, before or after ``accelerator.prepare``.
        schedule: Schedule whose ``total_steps`` count updates, or one per parameter group; see :class:`ScheduleLR`.
            An epoch has ``ceil(len(loader) / accumulation)`` updates, with the *prepared* loader.
        on_resume: What to do with the saved state of a different schedule; see :class:`ScheduleLR`.
        scale_weight_decay: Whether the weight decay follows the rate; see :class:`ScheduleLR`.
        num_steps: Number of updates that your loop takes. If you pass it, a schedule of another length is reported.
    """
    if not isinstance(accelerator, Accelerator):
        _check.wrong_type("prepare_schedule", "accelerator", "an accelerate.Accelerator", accelerator)
    bare = getattr(optimizer, "optimizer", optimizer)
    own = ScheduleLR(bare, schedule, on_resume=on_resume, scale_weight_decay=scale_weight_decay)
    if num_steps is not None:
        remedy = "Make the schedule with that number of steps: epochs x ceil(len(loader) / accumulation)."
        warn_of_length("prepare_schedule", schedule, num_steps, remedy)
    scheduler = UpdateScheduler(own, optimizer)
    kept: UpdateScheduler = accelerator.prepare_scheduler(scheduler)
    if kept is not scheduler:
        need = "of a version of accelerate that does not wrap a prepared scheduler again"
        _check.refuse("prepare_schedule", "accelerator", need, type(kept).__name__)
    return kept
