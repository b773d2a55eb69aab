"""A schedule as a Keras 3 learning-rate schedule, on any of its backends, saved with the model."""

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
    remedy = f"Keras found no {error.name}: set KERAS_BACKEND to torch, jax or tensorflow, whichever is installed."
    raise ImportError(f"eigencurve.adapters.keras: {remedy}") from error


@keras.saving.register_keras_serializable(package="eigencurve")
class KerasSchedule(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    r"""``schedule`` for the ``learning_rate`` of any Keras optimizer.

    Update t = ``optimizer.iterations`` = 0, 1, … gets f(t); beyond the last step the rate stays. The step may be
    traced, so it runs in a jitted train step too. The table of :mod:`eigencurve.schedules.segments` serves all
    backends: the rate is float32 and within :math:`2^{-22}` of f(t), relative, however long the run.

    It is saved with the model, all of it: after ``import eigencurve.adapters.keras``, ``keras.models.load_model`` needs
    no ``custom_objects`` and training goes on with the rate that would have come.

    Args:
        schedule: any schedule of this package.
        scale: what all rates are multiplied by. For groups with rates of their own, give
            ``keras.optimizers.MultiOptimizer`` one optimizer a group, each with the same schedule and its own scale.
        gradient_accumulation_steps: the optimizer's own argument of that name, where it has one. Keras shows its
            schedules the number of microbatches and not of updates; with this they see updates again.

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
        """The rate at ``step``, an integer, a tensor or a variable."""
        count = keras.ops.convert_to_tensor(step)
        if "int" not in keras.backend.standardize_dtype(count.dtype):
            raise TypeError(_check.sentence("KerasSchedule", "step", "an integer or an array of integers", step))
        return evaluate(self._segments, keras.ops.floor_divide(count, self.gradient_accumulation_steps), keras.ops)

    def get_config(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, the schedule itself among them."""
        return {
            "schedule": self.schedule.to_dict(),
            "scale": self.scale,
            "gradient_accumulation_steps": self.gradient_accumulation_steps,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> KerasSchedule:
        """The schedule that wrote ``config``."""
        return cls(**{**config, "schedule": schedule_from_dict(config["schedule"])})


def extend(model: keras.Model, schedule: Schedule) -> None:
    """Go on from the current step with another schedule, of another length for instance, on purpose.

    Setting ``model.optimizer.learning_rate`` alone would not do: the compiled train step keeps the schedule that it was
    traced with. Every optimizer in the model keeps its own scale.

    Args:
        model: compiled, with a :class:`KerasSchedule`; loaded from a file, or in the middle of its training.
        schedule: that goes on in the place of the old one.

    Raises:
        ValueError: a schedule that is over before the current step, or an optimizer without a KerasSchedule.
    """
    longer = require_schedule("extend", schedule)
    for optimizer in _optimizers(model):
        old = optimizer._learning_rate
        if not isinstance(old, KerasSchedule):
            _check.refuse("extend", "model", "one that trains with a KerasSchedule", old)
        taken = int(optimizer.iterations)
        if longer.total_steps <= taken:
            _check.refuse("extend", "schedule", f"of more than {taken} steps, the current one", longer.total_steps)
        optimizer.learning_rate = KerasSchedule(longer, old.scale, old.gradient_accumulation_steps)
    model.make_train_function(force=True)


def _optimizers(model: keras.Model) -> list[Any]:
    """The optimizers that hold rates: those inside a loss scale or a map of several."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        _check.refuse("extend", "model", "compiled", "a model without an optimizer", "Call model.compile first.")
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return list(getattr(inner, "optimizers", [inner]))
