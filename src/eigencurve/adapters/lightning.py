"""A schedule in a Lightning trainer: from ``configure_optimizers``, or from a callback that measures it."""

from __future__ import annotations

from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule

try:
    from lightning.pytorch import Callback
    from lightning.pytorch.utilities.types import LRSchedulerConfig
except ImportError:
    try:
        from pytorch_lightning import Callback
        from pytorch_lightning.utilities.types import LRSchedulerConfig
    except ImportError as error:
        raise ImportError("eigencurve.adapters.lightning needs Lightning: pip install eigencurve[lightning]") from error

from torch.optim import Optimizer

from eigencurve.adapters.measuring import Loss, MeasuredPlan, Measurement
from eigencurve.adapters.torch import ScheduleLR
from eigencurve.hessian.batches import Count

__all__ = ["MeasureSchedule", "Measurement", "ScheduleLR", "optimizer_config", "total_steps"]


def optimizer_config(optimizer: Optimizer, schedule: Schedule, on_resume: str = "refuse") -> dict[str, Any]:
    """What ``configure_optimizers`` returns: ``optimizer`` and ``schedule``, stepped once per optimizer step.

    Lightning's own default steps a scheduler once per epoch. Its checkpoints restore the step, and with it the rate.

    Args:
        optimizer: any; the first group gets the schedule's rate, the others keep their ratio to it.
        schedule: of as many steps as the trainer takes; see :func:`total_steps`.
        on_resume: as in :class:`ScheduleLR`.
    """
    scheduler = ScheduleLR(optimizer, schedule, on_resume=on_resume)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step", "frequency": 1}}


def total_steps(trainer: Any) -> int:
    """The optimizer steps of a whole ``trainer.fit``: accumulation, devices, epochs and limits counted.

    For use in ``configure_optimizers``: ``ec.cosine(total_steps(self.trainer), lr=0.1)``.

    Raises:
        ValueError: a run without an end.
    """
    steps = trainer.estimated_stepping_batches
    if steps == float("inf") or steps < 1:
        remedy = "Give the trainer max_steps, or max_epochs with a loader of known length."
        _check.refuse("total_steps", "trainer", "one that ends after a known number of steps", steps, remedy)
    return int(steps)


class MeasureSchedule(Callback):
    """Measures the spectrum at the start of an epoch and lets its Eigencurve schedule take over.

    ``configure_optimizers`` returns the optimizer alone: the scheduler comes from here. A checkpoint holds what was
    measured, so that a resumed run does not measure again.

    Args:
        objective: ``objective(module, batch)``, the mean loss over a batch; without logging.
        measurement: when and how to measure, and what to make of it.
        count: over how many examples the loss of a batch is the mean, where that is not its rows.
        on_resume: as in :class:`ScheduleLR`, where the trainer's number of steps has changed.

    Attributes:
        plan: its ``estimate`` is the measured spectrum; None before.
        scheduler: the :class:`ScheduleLR` in use; its ``schedule`` can be previewed. None before the fit.
    """

    def __init__(
        self, objective: Loss, measurement: Measurement, count: Count | None = None, on_resume: str = "refuse"
    ) -> None:
        super().__init__()
        self.plan, self.on_resume = MeasuredPlan(objective, measurement, count), on_resume
        self.scheduler: ScheduleLR | None = None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Put the scheduler in its place, before a checkpoint is restored into it."""
        if trainer.lr_scheduler_configs or len(trainer.optimizers) != 1:
            got = f"{len(trainer.optimizers)} optimizers, {len(trainer.lr_scheduler_configs)} schedulers"
            remedy = "Return the optimizer alone."
            _check.refuse("MeasureSchedule", "configure_optimizers", "of one optimizer, no scheduler", got, remedy)
        schedule = self.plan.schedule(total_steps(trainer))
        self.scheduler = ScheduleLR(trainer.optimizers[0], schedule, on_resume=self.on_resume)
        trainer.strategy.lr_scheduler_configs = [LRSchedulerConfig(self.scheduler, interval="step")]

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Measure, where this is the epoch for it."""
        if self.scheduler is not None and self.plan.due(trainer.current_epoch):
            steps = total_steps(trainer)
            self.plan.measure(pl_module, trainer.train_dataloader, self.scheduler.last_epoch, steps)
            self.scheduler.extend(self.plan.schedule(steps))

    def state_dict(self) -> dict[str, Any]:
        """What was measured; the step is in the scheduler's own state."""
        return self.plan.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where ``state_dict`` was taken."""
        self.plan.load_state_dict(state_dict)
        if self.scheduler is not None:  # some strategies restore callbacks after the fit has begun
            self.scheduler.extend(self.plan.schedule(self.scheduler.schedule.total_steps))
