"""A schedule in a Hugging Face Trainer, as one of its ``optimizers`` or from a callback; and its models' spectra."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule

try:
    import torch
    from torch import Tensor, nn
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError(
        "eigencurve.adapters.transformers needs transformers: pip install eigencurve[transformers]"
    ) from error

from eigencurve.adapters.measuring import Loss, MeasuredPlan, Measurement
from eigencurve.adapters.torch import ScheduleLR
from eigencurve.hessian.batches import Count

__all__ = [
    "LabelCount", "MeasureSchedule", "Measurement", "ScheduleCallback", "ScheduleLR", "model_loss", "total_steps",
]  # fmt: skip
# Where the callbacks keep what a checkpoint must know, in the trainer's own state.
KEY = "eigencurve"
# The label that the losses of transformers leave out.
IGNORED = -100


def total_steps(args: Any, num_examples: int) -> int:
    """The optimizer steps of ``Trainer(args=args).train()``: accumulation, devices, epochs and limits counted.

    For ``Trainer(optimizers=...)``, which wants its scheduler before it counts; a callback is told by the trainer.

    Args:
        args: the TrainingArguments.
        num_examples: in the training set.
    """
    if args.max_steps > 0:
        return int(args.max_steps)
    examples = _check.whole("total_steps", "num_examples", num_examples, minimum=1)
    batches = examples / (args.train_batch_size * args.world_size)
    whole_batches = math.floor(batches) if args.dataloader_drop_last else math.ceil(batches)
    updates: float = max(math.ceil(whole_batches / args.gradient_accumulation_steps), 1)
    return math.ceil(float(args.num_train_epochs) * updates)


class ScheduleCallback(TrainerCallback):
    """Gives every optimizer step of a Trainer the rate of ``schedule`` at ``state.global_step``.

    The rate is a function of the trainer's own count, so resuming needs nothing else, and a step that mixed precision
    skipped is a step. The trainer's own scheduler still runs, and counts for nothing; what the trainer logs is the
    rate of this one. The first group gets the schedule's rate, the others keep their ratio to it.

    Args:
        schedule: a schedule; or a function from the trainer's number of steps to one, such as
            ``lambda steps: ec.cosine(steps, lr=5e-5)``.
        on_resume: what to do with the checkpoint of another schedule; see :class:`ScheduleLR`.

    Attributes:
        scheduler: the :class:`ScheduleLR` in use; its ``schedule`` can be previewed. None before the training.
    """

    def __init__(self, schedule: Schedule | Callable[[int], Schedule], on_resume: str = "refuse") -> None:
        if not isinstance(schedule, Schedule) and not callable(schedule):
            need = "a Schedule, or a function from the number of steps to one"
            raise TypeError(_check.sentence("ScheduleCallback", "schedule", need, schedule))
        self._given, self.on_resume = schedule, on_resume
        self.scheduler: ScheduleLR | None = None

    def schedule_for(self, num_steps: int) -> Schedule:
        """The schedule of a training of ``num_steps``."""
        return self._given if isinstance(self._given, Schedule) else self._given(num_steps)

    def on_train_begin(self, args: Any, state: Any, control: Any, **trainer: Any) -> None:  # noqa: ARG002
        """Make the scheduler, and compare it with what the checkpoint knows."""
        bare = getattr(trainer["optimizer"], "optimizer", trainer["optimizer"])
        self.scheduler = ScheduleLR(bare, self.schedule_for(state.max_steps), on_resume=self.on_resume)
        saved = state.stateful_callbacks.get(KEY)
        if saved is not None and state.global_step > 0:
            self.scheduler.load_state_dict({**saved["scheduler"], "last_epoch": state.global_step})
        self._remember(state)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **trainer: Any) -> None:  # noqa: ARG002
        """Set the rates of the step that follows."""
        if self.scheduler is not None:
            self.scheduler.step(state.global_step)
            trainer["lr_scheduler"]._last_lr = self.scheduler.get_last_lr()  # what the trainer logs

    def _remember(self, state: Any) -> None:
        if self.scheduler is not None:
            state.stateful_callbacks[KEY] = {"scheduler": self.scheduler.state_dict()}


class MeasureSchedule(ScheduleCallback):
    """Measures the spectrum at the start of an epoch and lets its Eigencurve schedule take over.

    A checkpoint holds what was measured, so that a resumed run does not measure again.

    Args:
        measurement: when and how to measure, and what to make of it.
        objective: ``objective(model, batch)``, the mean loss over a batch; by default the model's own.
        count: over how many examples the loss of a batch is the mean; by default its labels, see :class:`LabelCount`.
        on_resume: as in :class:`ScheduleLR`, where the trainer's number of steps has changed.

    Attributes:
        plan: its ``estimate`` is the measured spectrum; None before.
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
        """Know again what the checkpoint knows; then as every schedule."""
        saved = state.stateful_callbacks.get(KEY)
        if saved is not None and state.global_step > 0:
            self.plan.load_state_dict(saved["plan"])
        super().on_train_begin(args, state, control, **trainer)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **trainer: Any) -> None:  # noqa: ARG002
        """Measure, where this is the epoch for it."""
        if self.scheduler is None or not self.plan.due(math.floor(state.epoch or 0)):
            return
        if self.plan.count is None and self.plan.objective is model_loss:
            self.plan.count = LabelCount(trainer["model"])
        self.plan.measure(trainer["model"], trainer["train_dataloader"], state.global_step, state.max_steps)
        self.scheduler.step(state.global_step)
        self.scheduler.extend(self.plan.schedule(state.max_steps))
        self._remember(state)

    def _remember(self, state: Any) -> None:
        super()._remember(state)
        state.stateful_callbacks[KEY]["plan"] = self.plan.state_dict()


def model_loss(model: nn.Module, batch: Mapping[str, Any]) -> Tensor:
    """The loss that a model of transformers computes itself, for ``HessianOperator.from_objective``."""
    loss: Tensor | None = model(**batch).loss
    if loss is None:
        _check.refuse("model_loss", "batch", "one with labels", sorted(batch), "The model returned no loss.")
    return loss


class LabelCount:
    """Over how many labels a model's own loss of a batch is the mean: the ``count`` of ``HessianOperator``.

    Labels of -100 do not count. Nor does the first label of every row where the model predicts the next token, which it
    is asked once: whether a batch whose only label is the first has a loss. Labels that are not whole numbers, or none
    at all, count as rows.

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
        """The number of labels of ``batch`` that its loss is the mean of."""
        labels = batch.get("shift_labels", batch.get("labels"))
        if labels is None or labels.is_floating_point():
            return next(len(value) for value in batch.values() if isinstance(value, Tensor) and value.ndim)
        if labels.ndim > 1 and "shift_labels" not in batch:
            labels = labels[:, 1:] if self._next_token(batch) else labels
        return int(labels.ne(IGNORED).sum())

    def _next_token(self, batch: Mapping[str, Any]) -> bool:
        if self._shifts is None:
            row = {name: value[:1] if isinstance(value, Tensor) else value for name, value in batch.items()}
            labels = torch.full_like(row["labels"], IGNORED)
            labels[:, 0] = 0
            with torch.no_grad():
                loss = model_loss(self.model, {**row, "labels": labels})
            self._shifts = not (bool(torch.isfinite(loss)) and loss.item() > 0)
        return self._shifts
