"""A schedule for Lightning: returned by ``configure_optimizers``, or measured by a callback."""

from __future__ import annotations

import math
from typing import Any, Unpack

from eigencurve import _check
from eigencurve.adapters.groups import CooldownOptions, Schedules, warn_of_length
from eigencurve.schedules.units import Steps

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
from eigencurve.adapters.range_test import RangeSettings, RangeTest, run_range_test
from eigencurve.adapters.torch import ScheduleLR
from eigencurve.hessian.batches import Count

__all__ = [
    "Cooldown", "MeasureSchedule", "Measurement", "RangeTestCallback", "ScheduleLR", "optimizer_config",
    "scheduler_of", "total_steps",
]  # fmt: skip


def optimizer_config(
    optimizer: Optimizer,
    schedule: Schedules,
    on_resume: str = "refuse",
    scale_weight_decay: bool = False,
    trainer: Any = None,
) -> dict[str, Any]:
    """Return value for ``configure_optimizers``: ``optimizer`` with ``schedule``, which advances at every step.

    By default, Lightning advances a scheduler once per epoch. Checkpoints of the trainer restore the step and the rate.

    Args:
        optimizer: Any PyTorch optimizer. With one schedule, the first group gets its rate; the others keep their ratio.
        schedule: Schedule with as many steps as the trainer takes, or one per parameter group; see :func:`total_steps`
            and :class:`ScheduleLR`.
        on_resume: What to do with the saved state of a different schedule; see :class:`ScheduleLR`.
        scale_weight_decay: Whether the weight decay follows the rate; see :class:`ScheduleLR`.
        trainer: Pass ``self.trainer`` to be warned if the schedule has another length than the run.
    """
    scheduler = ScheduleLR(optimizer, schedule, on_resume=on_resume, scale_weight_decay=scale_weight_decay)
    if trainer is not None:
        _warn_of_length("optimizer_config", schedule, trainer)
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


def scheduler_of(trainer: Any) -> ScheduleLR:
    """The :class:`ScheduleLR` of a trainer, while it fits: to read its schedule, or to call ``cooldown`` or ``extend``.

    Raises:
        ValueError: If the trainer has none, or several.
    """
    configs = [config.scheduler for config in trainer.lr_scheduler_configs]
    ours = [scheduler for scheduler in configs if isinstance(scheduler, ScheduleLR)]
    if len(ours) != 1:
        remedy = "Return optimizer_config(...) from configure_optimizers."
        _check.refuse("scheduler_of", "trainer", "one that fits with one ScheduleLR", f"{len(ours)} of them", remedy)
    return ours[0]


class Cooldown(Callback):
    """Callback that lets the rate decay from a step of the run on, also after a checkpoint.

    To branch off a run that holds its rate, fit from one of its checkpoints with this callback and with ``max_steps``
    at the end of the decay. Use ``optimizer_config(..., on_resume="adopt")``, so that a checkpoint of the branch itself
    can be resumed as well.

    Args:
        num_steps: Number of steps of the decay.
        from_step: First step of the decay; by default the first one of this fit.
        **options: ``shape``, ``min_lr`` and ``spectrum``; see :func:`eigencurve.cooldown`.
    """

    def __init__(self, num_steps: Steps, from_step: int | None = None, **options: Unpack[CooldownOptions]) -> None:
        super().__init__()
        self.num_steps, self.from_step, self.options, self.done = num_steps, from_step, options, False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Change the schedule, unless the checkpoint contains the change already."""
        scheduler = scheduler_of(trainer)
        if not self.done:
            scheduler.cooldown(self.from_step, num_steps=self.num_steps, **self.options)
            self.done = True
        _warn_of_length("Cooldown", scheduler.schedule, trainer)

    def state_dict(self) -> dict[str, Any]:
        """Whether the schedule has been changed."""
        return {"done": self.done}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state of ``state_dict``."""
        self.done = bool(state_dict["done"])


class RangeTestCallback(Callback):
    """Callback that runs a learning-rate range test at the start of the fit; the training itself is not affected.

    With several processes, each one tests its own share of the data, and the first one's result is as good as any.

    Args:
        objective: ``objective(module, batch)``, the mean loss of a batch, without logging.
        stop: Whether to end the fit after the test, before the first step.
        **settings: Settings of :func:`eigencurve.adapters.range_test.range_test`, such as ``max_lr`` and ``num_steps``.

    Attributes:
        result: :class:`eigencurve.adapters.range_test.RangeTest`, None before the fit.
    """

    def __init__(self, objective: Loss, stop: bool = False, **settings: Any) -> None:
        super().__init__()
        self.objective, self.stop, self.settings = objective, stop, RangeSettings(**settings)
        self.result: RangeTest | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Run the test on the trainer's first optimizer."""
        optimizer = trainer.optimizers[0]
        loader = trainer.train_dataloader
        self.result = run_range_test(pl_module, self.objective, loader, optimizer, self.settings)
        trainer.should_stop = trainer.should_stop or self.stop


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
        at_epoch = self.plan.measurement.at_epoch
        if at_epoch is not None and trainer.max_epochs is not None and 0 <= trainer.max_epochs <= at_epoch:
            self.plan.warn_of_no_measurement(trainer.max_epochs)
        schedule = self.plan.schedule(total_steps(trainer))
        self.scheduler = ScheduleLR(trainer.optimizers[0], schedule, on_resume=self.on_resume)
        trainer.strategy.lr_scheduler_configs = [LRSchedulerConfig(self.scheduler, interval="step")]

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Measure the spectrum if this is the epoch for it."""
        if self.scheduler is not None and self.plan.due(trainer.current_epoch, _num_epochs(trainer)):
            steps = total_steps(trainer)
            self.plan.measure(
                pl_module, trainer.train_dataloader, self.scheduler.last_epoch, steps, trainer.optimizers[0]
            )
            self.scheduler.extend(self.plan.schedule(steps))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Warn if the run ended before the epoch of the measurement."""
        if trainer.global_step >= total_steps(trainer):
            self.plan.warn_of_no_measurement(max(trainer.current_epoch, 1))

    def state_dict(self) -> dict[str, Any]:
        """State of the plan; the step is in the scheduler's own state."""
        return self.plan.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state of ``state_dict``."""
        self.plan.load_state_dict(state_dict)
        if self.scheduler is not None:  # some strategies restore callbacks after the start of the fit
            self.scheduler.extend(self.plan.schedule(self.scheduler.schedule.total_steps))


def _num_epochs(trainer: Any) -> int:
    """Number of epochs that the run has or begins; 1 if an epoch does not end."""
    if trainer.num_training_batches == float("inf"):
        return 1
    steps_per_epoch: int = math.ceil(trainer.num_training_batches / trainer.accumulate_grad_batches)
    return math.ceil(total_steps(trainer) / steps_per_epoch)


def _warn_of_length(function: str, schedules: Schedules, trainer: Any) -> None:
    steps = trainer.estimated_stepping_batches
    if steps != float("inf") and steps >= 1:
        remedy = "Make the schedule with total_steps(self.trainer) steps, or set the trainer's max_steps."
        warn_of_length(function, schedules, int(steps), remedy)
