"""Generated training code: the shortest program that uses a schedule, for each framework."""

from __future__ import annotations

from typing import Protocol

from eigencurve import _check
from eigencurve.planning.templates import ADAM_IN_TRANSFORMERS, TEMPLATES, YOUR_OPTIMIZER, Template
from eigencurve.planning.training import BETA1, Training
from eigencurve.schedules.base import Schedule

# Names of the optimizers in PyTorch and Keras.
NAMES = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}
FRAMEWORKS = tuple(TEMPLATES)
# β₂ of Adam in every framework.
BETA2 = 0.999
KERAS_DECAY = (
    "# Keras multiplies the weights by 1 - lr * weight_decay at every step. PyTorch's {name} adds the decay to the\n"
    "# gradient instead, which passes through the {passes}.\n"
)


class ScheduleSource(Protocol):
    """A schedule, how its run trains, and the Python code that creates it: a Plan, a Recipe or a SavedSchedule."""

    @property
    def schedule(self) -> Schedule: ...  # noqa: D102
    @property
    def training(self) -> Training: ...  # noqa: D102
    def imports(self) -> list[str]: ...  # noqa: D102
    def statements(self) -> list[str]: ...  # noqa: D102


def snippet(framework: str, source: ScheduleSource) -> str:
    """Generate code that trains with a schedule, ready to paste.

    The optimizer has the settings of ``source.training``; a comment lists those that are assumed. If the optimizer is
    not known, the code uses that of the reader.

    Args:
        framework: One of ``FRAMEWORKS``.
        source: The schedule and the code that creates it.
    """
    _check.choice("snippet", "framework", framework, FRAMEWORKS)
    training, needed = source.training, source.imports()
    template, words = _template(framework, training), _words(training, source.schedule.total_steps)
    standard = [line for line in needed if "eigencurve" not in line]
    own = [template.adapter, *(line for line in needed if "eigencurve" in line)]
    blocks = [
        [f"# Defined by you: {template.defined_by_you.format_map(words)}"],
        [f"# Assumed, because not given: {', '.join(training.assumed)}"] if training.assumed else [],
        [*standard, ""] if standard else [],
        [*template.imports, ""] if template.imports else [],
        ["import eigencurve as ec", *own, ""],
        source.statements(),
    ]
    return "\n".join(line for block in blocks for line in block) + "\n" + template.body.format_map(words)


def _template(framework: str, training: Training) -> Template:
    if training.optimizer is None:
        return YOUR_OPTIMIZER[framework]
    if framework == "transformers" and training.optimizer == "adam":
        return ADAM_IN_TRANSFORMERS
    return TEMPLATES[framework]


def _words(training: Training, total_steps: int) -> dict[str, object]:
    """What the templates contain, by name."""
    size = training.batch_size
    return {
        "total_steps": total_steps,
        "size": "" if size is None else f"of {size:,} examples ",
        "of_size": "" if size is None else f" (batches of {size:,} examples)",
        "ask_size": "batch_size, " if size is None else "",
        "batch_size": "batch_size" if size is None else size,
        "per_device": "" if size is None else f", per_device_train_batch_size={size}",
        "per_device_words": "" if size is None else f" of {size:,} examples",
        "weight_decay": repr(training.weight_decay),
        "torch_of_model": _torch("model", training),
        "torch_of_self": _torch("self", training),
        "keras": _keras(training),
        "keras_decay": _keras_decay(training),
        "optax": _optax(training),
        "transformers": _transformers(training),
    }


def _torch(owner: str, training: Training) -> str:
    betas = {"betas": (training.momentum, BETA2)} if training.momentum != BETA1 else {}
    own = betas if training.is_adam else _momentum(training)
    settings = _arguments({**own, "weight_decay": training.weight_decay})
    return f"torch.optim.{_name(training)}({owner}.parameters(), lr=schedule.lr{settings})"


def _keras(training: Training) -> str:
    settings = _arguments({**_inertia(training, "beta_1"), "weight_decay": training.weight_decay})
    return f"keras.optimizers.{_name(training)}(KerasSchedule(schedule){settings})"


def _keras_decay(training: Training) -> str:
    """A comment if Keras applies the weight decay in another way than PyTorch."""
    inertia = training.is_adam or training.momentum > 0
    if not training.weight_decay or training.optimizer == "adamw" or not inertia:
        return ""
    passes = "moving averages" if training.is_adam else "momentum"
    return KERAS_DECAY.format(name=_name(training), passes=passes)


def _optax(training: Training) -> str:
    """The optimizer in optax, where only AdamW has a weight decay of its own."""
    inertia, decay = _inertia(training, "b1"), training.weight_decay
    if training.optimizer == "adamw":
        return f"optax.adamw(optax_schedule(schedule){_arguments({**inertia, 'weight_decay': decay})})"
    update = f"optax.{training.optimizer}(optax_schedule(schedule){_arguments(inertia)})"
    return f"optax.chain(\n    optax.add_decayed_weights({decay!r}), {update}\n)"


def _transformers(training: Training) -> str:
    """The ``optim`` of TrainingArguments; options of SGD follow in ``optim_args``."""
    if training.is_adam:
        return '"adamw_torch"' + _arguments(_inertia(training, "adam_beta1"))
    options = ",".join(f"{name}={value!r}" for name, value in _momentum(training).items())
    return '"sgd"' + (f', optim_args="{options}"' if options else "")


def _inertia(training: Training, beta1: str) -> dict[str, object]:
    """Momentum of SGD, or β₁ of Adam by its name in a framework; empty if it is the framework's default."""
    if not training.is_adam:
        return _momentum(training)
    return {beta1: training.momentum} if training.momentum != BETA1 else {}


def _momentum(training: Training) -> dict[str, object]:
    settings: dict[str, object] = {"momentum": training.momentum} if training.momentum else {}
    return {**settings, "nesterov": True} if training.nesterov else settings


def _arguments(settings: dict[str, object]) -> str:
    return "".join(f", {name}={value!r}" for name, value in settings.items())


def _name(training: Training) -> str:
    return NAMES[training.optimizer or "sgd"]
