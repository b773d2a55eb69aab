"""A schedule for Lightning: returned by ``configure_optimizers``, or measured by a callback."""

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
    """Return value for ``configure_optimizers``: ``optimizer`` with ``schedule``, which advances at every step.

    By default, Lightning advances a scheduler once per epoch. Checkpoints of the trainer restore the step and the rate.

    Args:
        optimizer: Any PyTorch optimizer. The first group gets the schedule's rate; the others keep their ratio to it.
        schedule: Schedule with as many steps as the trainer takes; see :func:`total_steps`.
        on_resume: What to do with the saved state of a different schedule; see :class:`ScheduleLR`.
    """
    scheduler = ScheduleLR(optimizer, schedule, on_resume=on_resume)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step", "frequency": 1}}


def total_steps(trainer: Any) -> int:
    """Total number of optimizer steps of ``trainer.fit``, given its epochs, devices, accumulation and limits.

    Use it in ``configure_optimizers``: ``ec.cosine(total_steps(self.trainer), lr=0.1)``.

    Raises:
        ValueError: If the run has no end.
    """
    steps = trainer.estimated_stepping_batches
    if steps == float("inf") or steps < 1:
        remedy = "Set max_steps of the trainer, or max_epochs with a loader of known length."
        _check.refuse("total_steps", "trainer", "one that ends after a known number of steps", steps, remedy)
    return int(steps)


class MeasureSchedule(Callback):
    """Callback that measures the spectrum at the start of an epoch and then follows its Eigencurve schedule.

    ``configure_optimizers`` must return the optimizer alone; the callback adds the scheduler. Checkpoints contain the
    measured spectrum, so a resumed run does not measure again.

    Args:
        objective: ``objective(module, batch)``, the mean loss of a batch, without logging.
        measurement: When and how to measure, and which schedule to make.
        count: Function that returns the number of examples over which the loss of a batch is the mean; by default the
            number of rows.
        on_resume: What to do if the trainer's number of steps has changed; see :class:`ScheduleLR`.

    Attributes:
        plan: Plan of the run; ``plan.estimate`` is the measured spectrum, None before the measurement.
        scheduler: :class:`ScheduleLR` in use, None before the fit. Its ``schedule`` can be previewed.
    """

    def __init__(
        self, objective: Loss, measurement: Measurement, count: Count | None = None, on_resume: str = "refuse"
    ) -> None:
        super().__init__()
        self.plan, self.on_resume = MeasuredPlan(objective, measurement, count), on_resume
        self.scheduler: ScheduleLR | None = None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Install the scheduler, before Lightning restores a checkpoint into it."""
        if trainer.lr_scheduler_configs or len(trainer.optimizers) != 1:
            got = f"{len(trainer.optimizers)} optimizers, {len(trainer.lr_scheduler_configs)} schedulers"
            remedy = "Return only the optimizer."
            need = "a function that returns one optimizer and no scheduler"
            _check.refuse("MeasureSchedule", "configure_optimizers", need, got, remedy)
        schedule = self.plan.schedule(total_steps(trainer))
        self.scheduler = ScheduleLR(trainer.optimizers[0], schedule, on_resume=self.on_resume)
        trainer.strategy.lr_scheduler_configs = [LRSchedulerConfig(self.scheduler, interval="step")]

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Measure the spectrum if this is the epoch for it."""
        if self.scheduler is not None and self.plan.due(trainer.current_epoch):
            steps = total_steps(trainer)
            self.plan.measure(pl_module, trainer.train_dataloader, self.scheduler.last_epoch, steps)
            self.scheduler.extend(self.plan.schedule(steps))

    def state_dict(self) -> dict[str, Any]:
        """State of the plan; the step is in the scheduler's own state."""
        return self.plan.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state of ``state_dict``."""
        self.plan.load_state_dict(state_dict)
        if self.scheduler is not None:  # some strategies restore callbacks after the start of the fit
            self.scheduler.extend(self.plan.schedule(self.scheduler.schedule.total_steps))
