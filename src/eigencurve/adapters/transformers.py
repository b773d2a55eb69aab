"""A schedule for the Hugging Face Trainer, in its ``optimizers`` or from a callback, and the loss of its models."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from eigencurve import _check
from eigencurve.adapters.groups import CooldownOptions, Schedules, warn_of_length
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.units import Steps

try:
    import torch
    from torch import Tensor, nn
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError(
        "eigencurve.adapters.transformers needs transformers: pip install eigencurve[transformers]"
    ) from error

from eigencurve.adapters.measuring import Loss, MeasuredPlan, Measurement
from eigencurve.adapters.range_test import RangeSettings, RangeTest, run_range_test
from eigencurve.adapters.torch import ScheduleLR
from eigencurve.hessian.batches import Count

__all__ = [
    "LabelCount", "MeasureSchedule", "Measurement", "RangeTestCallback", "ScheduleCallback", "ScheduleLR",
    "model_loss", "total_steps",
]  # fmt: skip
# Key of the callbacks' state in the state of the trainer, which checkpoints contain.
KEY = "eigencurve"
# The label that the losses of transformers ignore.
IGNORED = -100


def total_steps(args: Any, num_examples: int) -> int:
    """Total number of optimizer steps of ``Trainer(args=args).train()``.

    Use it for ``Trainer(optimizers=...)``, which needs a scheduler before the trainer has counted its steps. A callback
    does not need it.

    Args:
        args: The TrainingArguments, with their epochs, devices, accumulation and limits.
        num_examples: Number of examples in the training set.
    """
    if args.max_steps > 0:
        return int(args.max_steps)
    examples = _check.whole("total_steps", "num_examples", num_examples, minimum=1)
    batches = examples / (args.train_batch_size * args.world_size)
    whole_batches = math.floor(batches) if args.dataloader_drop_last else math.ceil(batches)
    updates: float = max(math.ceil(whole_batches / args.gradient_accumulation_steps), 1)
    return math.ceil(float(args.num_train_epochs) * updates)


class ScheduleCallback(TrainerCallback):
    """Callback that sets the rate of every optimizer step to ``schedule`` at ``state.global_step``.

    The rate is a function of the trainer's own step count, so the callback resumes with the trainer, and a step that
    mixed precision skips counts. The trainer's own scheduler still runs, but has no effect; the trainer logs the rate
    of this callback. The first group gets the schedule's rate; the others keep their ratio to it.

    Args:
        schedule: A schedule, or one per parameter group as for :class:`ScheduleLR`; or a function from the trainer's
            number of steps to these, such as ``lambda steps: ec.cosine(steps, lr=5e-5)``.
        on_resume: What to do with the checkpoint of a different schedule; see :class:`ScheduleLR`.
        scale_weight_decay: Whether the weight decay follows the rate; see :class:`ScheduleLR`.

    Attributes:
        scheduler: :class:`ScheduleLR` in use, None before the training. Its ``schedule`` can be previewed.
    """

    def __init__(
        self,
        schedule: Schedules | Callable[[int], Schedules],
        on_resume: str = "refuse",
        scale_weight_decay: bool = False,
    ) -> None:
        if not isinstance(schedule, Schedule | list | tuple | Mapping) and not callable(schedule):
            need = "a Schedule, or a function from the number of steps to one"
            _check.wrong_type("ScheduleCallback", "schedule", need, schedule)
        self._given, self.on_resume, self.scale_weight_decay = schedule, on_resume, scale_weight_decay
        self.scheduler: ScheduleLR | None = None
        self._state: Any = None
        self._planned: Callable[[ScheduleLR], None] | None = None

    def schedule_for(self, num_steps: int) -> Schedules:
        """Schedule of a run of ``num_steps`` steps."""
        if isinstance(self._given, Schedule | list | tuple | Mapping):
            return self._given
        return self._given(num_steps)

    def cooldown(self, from_step: int | None = None, *, num_steps: Steps, **options: Unpack[CooldownOptions]) -> None:
        """Let the rate decay from ``from_step`` on, over ``num_steps`` steps; see :meth:`ScheduleLR.cooldown`.

        During training it takes effect at the next step. Before ``trainer.train(resume_from_checkpoint=...)``, it takes
        effect when the checkpoint has been restored; set ``max_steps`` to the end of the decay.
        """
        decay = functools.partial(ScheduleLR.cooldown, from_step=from_step, num_steps=num_steps, **options)
        if self.scheduler is None or self._state is None:
            self._planned = decay
        else:
            decay(self.scheduler)
            self._store(self._state)

    def on_train_begin(self, args: Any, state: Any, control: Any, **trainer: Any) -> None:  # noqa: ARG002
        """Create the scheduler and restore the state of a checkpoint into it."""
        bare = getattr(trainer["optimizer"], "optimizer", trainer["optimizer"])
        schedule = self.schedule_for(state.max_steps)
        self.scheduler = ScheduleLR(
            bare, schedule, on_resume=self.on_resume, scale_weight_decay=self.scale_weight_decay
        )
        self._state = state
        saved = state.stateful_callbacks.get(KEY)
        if saved is not None and state.global_step > 0:
            self.scheduler.load_state_dict({**saved["scheduler"], "last_epoch": state.global_step})
        if self._planned is not None:
            self._planned(self.scheduler)
            self._planned = None
        remedy = "Make it with ScheduleCallback(lambda steps: ...), or set max_steps of the TrainingArguments."
        warn_of_length(type(self).__name__, self.scheduler.schedules, state.max_steps, remedy)
        self._store(state)

    def on_train_end(self, args: Any, state: Any, control: Any, **trainer: Any) -> None:  # noqa: ARG002
        """Forget the finished run, so that :meth:`cooldown` plans for the next one."""
        self._state = None

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **trainer: Any) -> None:  # noqa: ARG002
        """Set the rates of the next optimizer step."""
        if self.scheduler is not None:
            num_groups = len(self.scheduler.ratios)
            self.scheduler.step(state.global_step)
            if len(self.scheduler.ratios) > num_groups:  # groups were added, so the checkpoints need their ratios
                self._store(state)
            trainer["lr_scheduler"]._last_lr = self.scheduler.get_last_lr()  # what the trainer logs

    def _store(self, state: Any) -> None:
        if self.scheduler is not None:
            state.stateful_callbacks[KEY] = {"scheduler": self.scheduler.state_dict()}


class MeasureSchedule(ScheduleCallback):
    """Callback that measures the spectrum at the start of an epoch and then follows its Eigencurve schedule.

    Checkpoints contain the measured spectrum, so a resumed run does not measure again.

    Args:
        measurement: When and how to measure, and which schedule to make.
        objective: ``objective(model, batch)``, the mean loss of a batch; by default the loss that the model returns.
        count: Function that returns the number of examples over which the loss of a batch is the mean; by default the
            number of labels, see :class:`LabelCount`.
        on_resume: What to do if the trainer's number of steps has changed; see :class:`ScheduleLR`.

    Attributes:
        plan: Plan of the run; ``plan.estimate`` is the measured spectrum, None before the measurement.
    """

    def __init__(
        self,
        measurement: Measurement,
        objective: Loss | None = None,
        count: Count | None = None,
        on_resume: str = "refuse",
    ) -> None:
        self.plan = MeasuredPlan(model_loss if objective is None else objective, measurement, count)
        super().__init__(self.plan.schedule, on_resume)

    def on_train_begin(self, args: Any, state: Any, control: Any, **trainer: Any) -> None:
        """Restore the measured spectrum from a checkpoint, then create the scheduler."""
        saved = state.stateful_callbacks.get(KEY)
        if saved is not None and state.global_step > 0:
            self.plan.load_state_dict(saved["plan"])
        super().on_train_begin(args, state, control, **trainer)
        num_epochs = math.ceil(state.num_train_epochs)
        if self.plan.measurement.epoch(num_epochs) >= num_epochs:
            self.plan.warn_of_no_measurement(num_epochs)

    def on_train_end(self, args: Any, state: Any, control: Any, **trainer: Any) -> None:
        """Warn if the run ended before the epoch of the measurement."""
        super().on_train_end(args, state, control, **trainer)
        if state.global_step >= state.max_steps:
            self.plan.warn_of_no_measurement(math.ceil(state.epoch or 0))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **trainer: Any) -> None:  # noqa: ARG002
        """Measure the spectrum if this is the epoch for it."""
        if self.scheduler is None or not self.plan.due(math.floor(state.epoch or 0), math.ceil(state.num_train_epochs)):
            return
        if self.plan.count is None and self.plan.objective is model_loss:
            self.plan.count = LabelCount(trainer["model"])
        self.plan.measure(
            trainer["model"], trainer["train_dataloader"], state.global_step, state.max_steps, trainer["optimizer"]
        )
        self.scheduler.step(state.global_step)
        self.scheduler.extend(self.plan.schedule(state.max_steps))
        self._store(state)

    def _store(self, state: Any) -> None:
        super()._store(state)
        state.stateful_callbacks[KEY]["plan"] = self.plan.state_dict()


class RangeTestCallback(TrainerCallback):
    """Callback that runs a learning-rate range test at the start of training; the training itself is not affected.

    Args:
        objective: ``objective(model, batch)``, the mean loss of a batch; by default the loss that the model returns.
        stop: Whether to end the training after the test, after a first step.
        **settings: Settings of :func:`eigencurve.adapters.range_test.range_test`, such as ``max_lr`` and ``num_steps``.

    Attributes:
        result: :class:`eigencurve.adapters.range_test.RangeTest`, None before the training.
    """

    def __init__(self, objective: Loss | None = None, stop: bool = False, **settings: Any) -> None:
        self.objective, self.stop = model_loss if objective is None else objective, stop
        self.settings = RangeSettings(**settings)
        self.result: RangeTest | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **trainer: Any) -> None:  # noqa: ARG002
        """Run the test on the trainer's optimizer."""
        optimizer = getattr(trainer["optimizer"], "optimizer", trainer["optimizer"])
        loader = trainer["train_dataloader"]
        self.result = run_range_test(trainer["model"], self.objective, loader, optimizer, self.settings)

    def on_step_begin(self, args: Any, state: Any, control: Any, **trainer: Any) -> None:  # noqa: ARG002
        """End the training if asked to."""
        control.should_training_stop = control.should_training_stop or self.stop


def model_loss(model: nn.Module, batch: Mapping[str, Any]) -> Tensor:
    """Loss that a transformers model returns for a batch, for ``HessianOperator.from_objective``."""
    loss: Tensor | None = model(**batch).loss
    if loss is None:
        _check.refuse("model_loss", "batch", "one with labels", sorted(batch), "The model returned no loss.")
    return loss


class LabelCount:
    """Number of labels over which a model's own loss is the mean, for the ``count`` of ``HessianOperator``.

    Labels of -100 are ignored. If the model predicts the next token, the first label of every row is ignored too; one
    call of the model finds this out. If there are no labels, or if they are not integers, rows are counted.

    >>> import torch
    >>> from transformers import BertConfig, BertForMaskedLM
    >>> config = BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    >>> batch = {"input_ids": torch.tensor([[1, 2, 3]]), "labels": torch.tensor([[-100, 2, -100]])}
    >>> LabelCount(BertForMaskedLM(config))(batch)
    1
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._shifts: bool | None = None

    def __call__(self, batch: Mapping[str, Any]) -> int:
        """Number of labels in ``batch`` that enter its loss."""
        labels = batch.get("shift_labels", batch.get("labels"))
        if labels is None or labels.is_floating_point():
            return next(len(value) for value in batch.values() if isinstance(value, Tensor) and value.ndim)
        if labels.ndim > 1 and "shift_labels" not in batch:
            labels = labels[:, 1:] if self._predicts_next_token(batch) else labels
        return int(labels.ne(IGNORED).sum())

    def _predicts_next_token(self, batch: Mapping[str, Any]) -> bool:
        """Whether a batch with no label but the first has no loss."""
        if self._shifts is None:
            row = {name: value[:1] if isinstance(value, Tensor) else value for name, value in batch.items()}
            labels = torch.full_like(row["labels"], IGNORED)
            labels[:, 0] = 0
            with torch.no_grad():
                loss = model_loss(self.model, {**row, "labels": labels})
            self._shifts = not (bool(torch.isfinite(loss)) and loss.item() > 0)
        return self._shifts
