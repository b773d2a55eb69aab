"""KerasSchedule: a schedule for Keras 3 optimizers, on any backend, saved with the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from eigencurve import _check
from eigencurve.adapters.groups import CooldownOptions, warn_of_length
from eigencurve.schedules.base import Schedule, require_schedule
from eigencurve.schedules.cooldown import cooldown as cooled_schedule
from eigencurve.schedules.cooldown import spliced
from eigencurve.schedules.kinds import schedule_from_dict
from eigencurve.schedules.segments import evaluate, segments_of
from eigencurve.schedules.units import Steps

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
            _check.wrong_type("KerasSchedule", "step", "an integer or an array of integers", step)
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


def extend(model: keras.Model, schedule: Schedule, rewarm: int | None = None) -> None:
    """Continue from the current step with another schedule, such as a longer one.

    Setting ``model.optimizer.learning_rate`` is not enough, because the compiled train step keeps the schedule that it
    was traced with. Every optimizer in the model keeps its own scale.

    Args:
        model: Compiled model with a :class:`KerasSchedule`, loaded from a file or in the middle of training.
        schedule: Schedule that replaces the old one.
        rewarm: Number of steps in which the rate goes linearly from its current value to that of the new schedule. None
            changes it at once, with a warning if the rate jumps up after a decay.

    Raises:
        ValueError: If the schedule ends before the current step, or if an optimizer has no KerasSchedule.
    """
    longer = require_schedule("extend", schedule)
    _replace("extend", model, lambda old, taken: spliced("extend", old, longer, taken, rewarm))


def cooldown(
    model: keras.Model, from_step: int | None = None, *, num_steps: Steps, **options: Unpack[CooldownOptions]
) -> None:
    """Let the rate of a model decay from ``from_step`` on, over ``num_steps`` steps.

    Call it between two calls of ``fit``, or after ``load_model``. Every optimizer in the model keeps its own scale.

    Args:
        model: Compiled model with a :class:`KerasSchedule`, loaded from a file or in the middle of training.
        from_step: First step of the decay; by default the next one.
        num_steps: Number of steps of the decay.
        **options: ``shape``, ``min_lr`` (for scale 1) and ``spectrum``; see :func:`eigencurve.cooldown`.

    Raises:
        ValueError: If ``from_step`` is a step that was already taken, or if an optimizer has no KerasSchedule.
    """

    def cooled(old: Schedule, taken: int) -> Schedule:
        start = taken if from_step is None else _check.whole("cooldown", "from_step", from_step, minimum=0)
        if start < taken:
            _check.refuse("cooldown", "from_step", f">= {taken}, the next step", start)
        return cooled_schedule(old, start, num_steps, **options)

    _replace("cooldown", model, cooled)


class CheckLength(keras.callbacks.Callback):  # type: ignore[misc]
    """Callback that warns at the start of ``fit`` if the schedule has another length than the training.

    The length of a fit is its number of batches per epoch times its epochs, plus the steps that were taken before.

    >>> model.fit(x, y, epochs=10, callbacks=[CheckLength()])  # doctest: +SKIP
    """

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Compare the number of steps of the fit with that of each schedule."""
        if not self.params.get("steps"):
            return  # a generator of unknown length
        for optimizer in _optimizers("CheckLength", self.model):
            schedule = optimizer._learning_rate
            if isinstance(schedule, KerasSchedule):
                updates = self.params["steps"] * self.params["epochs"] // schedule.gradient_accumulation_steps
                remedy = "Make the schedule for (batches per epoch / accumulation steps) x epochs steps, or use extend."
                warn_of_length("CheckLength", schedule.schedule, int(optimizer.iterations) + updates, remedy)


def _replace(function: str, model: keras.Model, later: Callable[[Schedule, int], Schedule]) -> None:
    """Give every optimizer of ``model`` a new schedule, made from its old one and the number of updates so far."""
    for optimizer in _optimizers(function, model):
        old = optimizer._learning_rate
        if not isinstance(old, KerasSchedule):
            _check.refuse(function, "model", "one that trains with a KerasSchedule", old)
        new = later(old.schedule, int(optimizer.iterations))  # updates, also with accumulation
        optimizer.learning_rate = KerasSchedule(new, old.scale, old.gradient_accumulation_steps)
    model.make_train_function(force=True)


def _optimizers(function: str, model: keras.Model) -> list[Any]:
    """The optimizers that have a rate, unwrapped from a loss-scale or a multi-optimizer."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        _check.refuse(function, "model", "compiled", "a model without an optimizer", "Call model.compile first.")
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return list(getattr(inner, "optimizers", [inner]))
