"""Generated training code: the shortest program that trains with a schedule, for each framework."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import Warmup
from eigencurve.schedules.kinds import schedule_from_dict, schedule_of_kind
from eigencurve.spectrum.source import SpectrumSource

if TYPE_CHECKING:
    from eigencurve.planning.result import Training

# Names of the optimizers in PyTorch and Keras.
NAMES = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}
# The defaults of Adam in every framework.
BETA1, BETA2 = 0.9, 0.999


@dataclass(frozen=True)
class ScheduleCode:
    """A schedule, how its run trains, and the Python code that makes it.

    Attributes:
        schedule: The schedule.
        training: Optimizer of the run, with its settings; if it is unknown, the code uses that of the reader.
        statements: Lines of Python that define an equal ``schedule``.
        imports: Imports that they need in addition to ``import eigencurve as ec``.
    """

    schedule: Schedule
    training: Training
    statements: tuple[str, ...]
    imports: tuple[str, ...] = ()

    @classmethod
    def from_numbers(cls, schedule: Schedule, training: Training) -> ScheduleCode:
        """Code that contains the numbers of the schedule."""
        return cls(schedule, training, (_from_dict(schedule),))

    @classmethod
    def from_file(cls, path: Path, schedule: Schedule, training: Training) -> ScheduleCode:
        """Code that loads the schedule from its JSON file."""
        line = f"schedule = ec.schedule_from_dict(json.loads(Path({literal(str(path))}).read_text()))"
        return cls(schedule, training, (line,), ("import json", "from pathlib import Path"))

    @classmethod
    def of_kind(
        cls,
        kind: str,
        total_steps: int,
        lr: float,
        training: Training,
        source: SpectrumSource | None = None,
        warmup_steps: int = 0,
        settings: Mapping[str, Any] | None = None,
        warmup_shape: str = "linear",
    ) -> ScheduleCode:
        """A schedule by the name of its kind, and the code that calls its function.

        Args:
            kind: Kind of the schedule; see :func:`eigencurve.schedules.kinds.schedule_of_kind`.
            total_steps: Total number of steps T, including the warmup.
            lr: Initial rate, or the peak after a warmup.
            training: Optimizer of the run, with its settings.
            source: Spectrum that ``"eigencurve"`` needs. Other kinds ignore it.
            warmup_steps: Number of warmup steps.
            settings: Further arguments of this kind of schedule.
            warmup_shape: Shape of the warmup; see :func:`eigencurve.warmup`.
        """
        own = dict(settings or {})
        spectrum = None if source is None else source.prepared
        schedule = schedule_of_kind(kind, total_steps, lr, spectrum, warmup_steps, warmup_shape, **own)
        words = {"total_steps": total_steps - warmup_steps, "lr": lr, **own}
        call = ", ".join(f"{name}={literal(value)}" for name, value in words.items())
        imports: tuple[str, ...] = ()
        statements = [f"schedule = ec.{kind}({call})"]
        if kind == "eigencurve" and source is not None:
            body = schedule.schedule if isinstance(schedule, Warmup) else schedule
            expression = _expression(source)
            statements = [f"spectrum = {expression}", f"schedule = ec.eigencurve(spectrum, {call})"]
            statements = statements if expression else [_from_dict(body)]
            imports = ("from eigencurve.spectrum.zoo import zoo_spectrum",) if source.origin == "zoo" else ()
        if warmup_steps:
            shape = "" if warmup_shape == "linear" else f", shape={literal(warmup_shape)}"
            statements.append(f"schedule = ec.warmup(schedule, {warmup_steps}{shape})")
        return cls(schedule, training, tuple(statements), imports)


def load_schedule(path: Path, content: bytes) -> Schedule:
    """Parse a schedule that was saved as JSON.

    Args:
        path: Path of the file, for error messages.
        content: Bytes of the file: :meth:`Schedule.to_dict` as JSON.
    """
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        _check.refuse("load_schedule", "path", "JSON", str(error), f"The file is {path}.")
    return schedule_from_dict(fields)


def literal(value: Any) -> str:
    r"""The Python code of a plain value, with strings in double quotes.

    Characters that cannot be printed are escaped. JSON would write an emoji as two halves, which Python does not join.

    >>> print(literal('a "🦔".npz'), literal("tab\t"), literal(0.1))
    "a \"🦔\".npz" "tab\t" 0.1
    """
    if not isinstance(value, str):
        return repr(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else repr(c)[1:-1] for c in escaped) + '"'


@dataclass(frozen=True)
class _Program:
    """The parts of a program for one framework.

    Attributes:
        defined_by_you: Names that the reader's program must define. The tests define them and run the rest.
        adapter: Import of this package's adapter.
        body: Code after the lines that make ``schedule``.
        imports: Imports of the framework.
    """

    defined_by_you: str
    adapter: str
    body: str
    imports: tuple[str, ...] = ()


def training_code(framework: str, code: ScheduleCode) -> str:
    """Generate code that trains with a schedule, ready to paste.

    The optimizer has the settings of ``code.training``; a comment lists those that are assumed. If the optimizer is not
    known, the code uses that of the reader.

    Args:
        framework: One of ``FRAMEWORKS``.
        code: The schedule and the code that makes it.
    """
    write = PROGRAMS[_check.choice("code", "framework", framework, FRAMEWORKS)]
    made, assumed = write(code.training, code.schedule.total_steps), code.training.assumed
    standard = [line for line in code.imports if "eigencurve" not in line]
    own = [made.adapter, *(line for line in code.imports if "eigencurve" in line)]
    blocks = [
        [f"# Defined by you: {made.defined_by_you}"],
        [f"# Assumed, because not given: {', '.join(assumed)}"] if assumed else [],
        [*standard, ""] if standard else [],
        [*made.imports, ""] if made.imports else [],
        ["import eigencurve as ec", *own, ""],
        code.statements,
    ]
    return "\n".join(line for block in blocks for line in block) + "\n" + made.body


def _torch(run: Training, total_steps: int) -> _Program:
    has_optimizer = run.optimizer is not None
    return _Program(
        f"model, loss_fn, {'' if has_optimizer else 'optimizer, '}{_batches(run, total_steps)}",
        "from eigencurve.adapters.torch import ScheduleLR",
        (f"optimizer = {_torch_optimizer('model', run)}\n" if has_optimizer else "")
        + """\
scheduler = ScheduleLR(optimizer, schedule)
for inputs, targets in batches:
    loss = loss_fn(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()  # after every optimizer step, not after every epoch
""",
        ("import torch",) if has_optimizer else (),
    )


def _lightning(run: Training, _: int) -> _Program:
    has_optimizer = run.optimizer is not None
    size = "" if run.batch_size is None else f" (batches of {run.batch_size:,} examples)"
    optimizer = _torch_optimizer("self", run) if has_optimizer else "super().configure_optimizers()"
    whose = "" if has_optimizer else ", whose configure_optimizers returns an optimizer"
    return _Program(
        f"Module (your LightningModule{whose}), loader{size}",
        "from eigencurve.adapters.lightning import optimizer_config",
        f"""\


class Scheduled(Module):
    def configure_optimizers(self):
        optimizer = {optimizer}
        return optimizer_config(optimizer, schedule)  # Lightning steps it after every optimizer step


trainer = lightning.Trainer(max_steps=schedule.total_steps)
trainer.fit(Scheduled(), loader)
""",
        ("import lightning", "import torch") if has_optimizer else ("import lightning",),
    )


def _transformers(run: Training, total_steps: int) -> _Program:
    size = "" if run.batch_size is None else f", per_device_train_batch_size={run.batch_size}"
    made = f'"output", max_steps=schedule.total_steps, learning_rate=schedule.lr{size}'
    yours, arguments, optimizers = "model, train_dataset", "", ""
    imports: tuple[str, ...] = ("from transformers import Trainer, TrainingArguments",)
    if run.optimizer is None:
        of_size = "" if run.batch_size is None else f" of {run.batch_size:,} examples"
        yours += f", arguments (your TrainingArguments, with {total_steps:,} steps{of_size})"
        imports = ("from transformers import Trainer",)
    elif run.optimizer == "adam":  # TrainingArguments has no Adam with the weight decay in the gradient
        arguments = f"arguments = TrainingArguments({made})\noptimizer = {_torch_optimizer('model', run)}\n"
        optimizers = ", optimizers=(optimizer, None)"
        imports = ("import torch", *imports)
    else:
        optim = f"weight_decay={run.weight_decay!r},\n    optim={_transformers_optimizer(run)}"
        arguments = f"arguments = TrainingArguments(\n    {made}, {optim},\n)\n"
    return _Program(
        yours,
        "from eigencurve.adapters.transformers import ScheduleCallback",
        f"""\
{arguments}trainer = Trainer(
    model, arguments, train_dataset=train_dataset{optimizers}, callbacks=[ScheduleCallback(schedule)]
)
trainer.train()
""",
        imports,
    )


def _keras(run: Training, total_steps: int) -> _Program:
    has_optimizer = run.optimizer is not None
    own = "" if has_optimizer else "optimizer, "
    ask_size = "batch_size, " if run.batch_size is None else ""
    make = "optimizer.learning_rate = KerasSchedule(schedule)\n"
    if has_optimizer:
        settings = _arguments({**_inertia(run, "beta_1"), "weight_decay": run.weight_decay})
        make = f"{_keras_decay(run)}optimizer = keras.optimizers.{_name(run)}(KerasSchedule(schedule){settings})\n"
    return _Program(
        f"model, {own}loss, x, y, {ask_size}epochs ({total_steps:,} updates in total)",
        "from eigencurve.adapters.keras import KerasSchedule",
        f"""\
{make}model.compile(optimizer=optimizer, loss=loss)
model.fit(x, y, batch_size={run.batch_size or "batch_size"}, epochs=epochs)
""",
        ("import keras",) if has_optimizer else (),
    )


def _optax(run: Training, total_steps: int) -> _Program:
    has_optimizer = run.optimizer is not None
    optimizer = _optax_optimizer(run) if has_optimizer else "optimizer_at(optax_schedule(schedule))"
    yours = "loss_fn(params, batch)" if has_optimizer else "loss_fn, optimizer_at (your optimizer for a learning rate)"
    return _Program(
        f"params, {yours}, {_batches(run, total_steps)}",
        "from eigencurve.adapters.optax import optax_schedule",
        f"""\
optimizer = {optimizer}
state = optimizer.init(params)


@jax.jit
def step(params, state, batch):
    gradients = jax.grad(loss_fn)(params, batch)
    updates, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, updates), state


for batch in batches:
    params, state = step(params, state, batch)
""",
        ("import jax", "import optax"),
    )


PROGRAMS = {"torch": _torch, "lightning": _lightning, "transformers": _transformers, "keras": _keras, "optax": _optax}
FRAMEWORKS = tuple(PROGRAMS)


def _from_dict(schedule: Schedule) -> str:
    return f"schedule = ec.schedule_from_dict({schedule.to_dict()!r})"


def _expression(source: SpectrumSource) -> str:
    """Python code of the prepared spectrum; empty if only its numbers can recreate it."""
    if source.is_law:
        law: Any = source.raw
        return f"ec.PowerLaw(alpha={law.alpha!r}, mu={law.mu!r}, L={law.L!r})"
    loaders = {
        "zoo": f"zoo_spectrum({literal(source.name)})",
        "file": f"ec.load_spectrum({literal(source.path)})",
    }
    raw = loaders.get(source.origin)
    return "" if raw is None else f"ec.spectrum.prepare({raw}, weight_decay={source.weight_decay!r})"


def _batches(run: Training, total_steps: int) -> str:
    size = "" if run.batch_size is None else f"of {run.batch_size:,} examples "
    return f"batches ({total_steps:,} batches {size}in total, over all epochs)"


def _torch_optimizer(owner: str, run: Training) -> str:
    betas = {"betas": (run.momentum, BETA2)} if run.momentum != BETA1 else {}
    settings = _arguments({**(betas if run.is_adam else _momentum(run)), "weight_decay": run.weight_decay})
    return f"torch.optim.{_name(run)}({owner}.parameters(), lr=schedule.lr{settings})"


def _keras_decay(run: Training) -> str:
    """A comment if Keras applies the weight decay in another way than PyTorch."""
    if not run.weight_decay or run.optimizer == "adamw" or not (run.is_adam or run.momentum > 0):
        return ""
    passes = "moving averages" if run.is_adam else "momentum"
    return (
        "# Keras multiplies the weights by 1 - lr * weight_decay at every step. PyTorch's "
        f"{_name(run)} adds the decay to the\n# gradient instead, which passes through the {passes}.\n"
    )


def _optax_optimizer(run: Training) -> str:
    """The optimizer in optax, where only AdamW has a weight decay of its own."""
    inertia, decay = _inertia(run, "b1"), run.weight_decay
    if run.optimizer == "adamw":
        return f"optax.adamw(optax_schedule(schedule){_arguments({**inertia, 'weight_decay': decay})})"
    update = f"optax.{run.optimizer}(optax_schedule(schedule){_arguments(inertia)})"
    return f"optax.chain(\n    optax.add_decayed_weights({decay!r}), {update}\n)"


def _transformers_optimizer(run: Training) -> str:
    """The ``optim`` of TrainingArguments; options of SGD follow in ``optim_args``."""
    if run.is_adam:
        return '"adamw_torch"' + _arguments(_inertia(run, "adam_beta1"))
    options = ",".join(f"{name}={value!r}" for name, value in _momentum(run).items())
    return '"sgd"' + (f', optim_args="{options}"' if options else "")


def _inertia(run: Training, beta1: str) -> dict[str, object]:
    """Momentum of SGD, or β₁ of Adam by its name in a framework; empty if it is the framework's default."""
    if not run.is_adam:
        return _momentum(run)
    return {beta1: run.momentum} if run.momentum != BETA1 else {}


def _momentum(run: Training) -> dict[str, object]:
    settings: dict[str, object] = {"momentum": run.momentum} if run.momentum else {}
    return {**settings, "nesterov": True} if run.nesterov else settings


def _arguments(settings: dict[str, object]) -> str:
    return "".join(f", {name}={value!r}" for name, value in settings.items())


def _name(run: Training) -> str:
    return NAMES[run.optimizer or "sgd"]
