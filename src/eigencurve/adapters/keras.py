"""KerasSchedule: a schedule for Keras 3 optimizers, on any backend, saved with the model."""

from __future__ import annotations

from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule, require_schedule
from eigencurve.schedules.segments import evaluate, segments_of
from eigencurve.schedules.serial import schedule_from_dict

try:
    import keras
except ModuleNotFoundError as error:
    if error.name == "keras":
        raise ImportError("eigencurve.adapters.keras needs Keras 3: pip install eigencurve[keras]") from error
    remedy = f"Keras cannot import {error.name}: set KERAS_BACKEND to torch, jax or tensorflow, whichever is installed."
    raise ImportError(f"eigencurve.adapters.keras: {remedy}") from error


@keras.saving.register_keras_serializable(package="eigencurve")
class KerasSchedule(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    r"""A schedule for the ``learning_rate`` argument of any Keras optimizer.

    Update t = ``optimizer.iterations`` = 0, 1, … gets f(t); beyond the last step, the rate stays constant. The step may
    be traced, so the schedule also works in a jitted train step. All backends use the table of
    :mod:`eigencurve.schedules.segments`: rates are float32 with a relative error of at most :math:`2^{-22}`, for runs
    of any length.

    The schedule is saved with the model. After ``import eigencurve.adapters.keras``, ``keras.models.load_model`` needs
    no ``custom_objects``, and training continues with the next rate.

    Args:
        schedule: Any schedule of this package.
        scale: Factor on all rates. For parameter groups with different rates, pass ``keras.optimizers.MultiOptimizer``
            one optimizer per group, each with the same schedule and its own scale.
        gradient_accumulation_steps: Value of the optimizer's argument of the same name, if you set it. Keras then
            counts microbatches instead of updates; with this argument, the schedule converts them to updates.

    >>> import eigencurve as ec
    >>> optimizer = keras.optimizers.SGD(KerasSchedule(ec.linear(total_steps=4, lr=0.5)))
    >>> float(optimizer.learning_rate)
    0.5
    """

    def __init__(self, schedule: Schedule, scale: float = 1.0, gradient_accumulation_steps: int = 1) -> None:
        self.schedule = require_schedule("KerasSchedule", schedule)
        self.scale = _check.positive("KerasSchedule", "scale", scale)
        self.gradient_accumulation_steps = _check.whole(
            "KerasSchedule", "gradient_accumulation_steps", gradient_accumulation_steps, minimum=1
        )
        self._segments = segments_of(self.schedule, self.scale)

    def __call__(self, step: Any) -> Any:
        """Learning rate at ``step``, an integer, a tensor or a variable."""
        count = keras.ops.convert_to_tensor(step)
        if "int" not in keras.backend.standardize_dtype(count.dtype):
            raise TypeError(_check.sentence("KerasSchedule", "step", "an integer or an array of integers", step))
        return evaluate(self._segments, keras.ops.floor_divide(count, self.gradient_accumulation_steps), keras.ops)

    def get_config(self) -> dict[str, Any]:
        """Configuration as plain numbers, strings and lists, including the schedule."""
        return {
            "schedule": self.schedule.to_dict(),
            "scale": self.scale,
            "gradient_accumulation_steps": self.gradient_accumulation_steps,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> KerasSchedule:
        """Create the schedule from the configuration of :meth:`get_config`."""
        return cls(**{**config, "schedule": schedule_from_dict(config["schedule"])})


def extend(model: keras.Model, schedule: Schedule) -> None:
    """Continue from the current step with another schedule, such as a longer one.

    Setting ``model.optimizer.learning_rate`` is not enough, because the compiled train step keeps the schedule that it
    was traced with. Every optimizer in the model keeps its own scale.

    Args:
        model: Compiled model with a :class:`KerasSchedule`, loaded from a file or in the middle of training.
        schedule: Schedule that replaces the old one.

    Raises:
        ValueError: If the schedule ends before the current step, or if an optimizer has no KerasSchedule.
    """
    longer = require_schedule("extend", schedule)
    for optimizer in _optimizers(model):
        old = optimizer._learning_rate
        if not isinstance(old, KerasSchedule):
            _check.refuse("extend", "model", "one that trains with a KerasSchedule", old)
        taken = int(optimizer.iterations)
        if longer.total_steps <= taken:
            _check.refuse("extend", "schedule", f"longer than the {taken} steps already taken", longer.total_steps)
        optimizer.learning_rate = KerasSchedule(longer, old.scale, old.gradient_accumulation_steps)
    model.make_train_function(force=True)


def _optimizers(model: keras.Model) -> list[Any]:
    """The optimizers that have a rate, unwrapped from a loss-scale or a multi-optimizer."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        _check.refuse("extend", "model", "compiled", "a model without an optimizer", "Call model.compile first.")
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return list(getattr(inner, "optimizers", [inner]))
