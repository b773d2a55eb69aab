"""Generated training code: the shortest program that uses a schedule, for each framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from eigencurve import _check
from eigencurve.schedules.base import Schedule


class ScheduleSource(Protocol):
    """A schedule and the Python code that creates it: a Recipe or a SavedSchedule."""

    @property
    def schedule(self) -> Schedule: ...  # noqa: D102
    @property
    def weight_decay(self) -> float: ...  # noqa: D102
    @property
    def momentum(self) -> float: ...  # noqa: D102
    @property
    def nesterov(self) -> bool: ...  # noqa: D102
    @property
    def optimizer(self) -> str: ...  # noqa: D102
    def imports(self) -> list[str]: ...  # noqa: D102
    def statements(self) -> list[str]: ...  # noqa: D102


@dataclass(frozen=True)
class Template:
    """Code template for one framework.

    Attributes:
        defined_by_you: Names that the reader's program must define. The tests define them and run the rest.
        imports: Imports of the framework.
        adapter: Import of this package's adapter.
        body: Code after the line that creates ``schedule``.
    """

    defined_by_you: str
    imports: tuple[str, ...]
    adapter: str
    body: str


TEMPLATES = {
    "torch": Template(
        defined_by_you="model, loss_fn, batches ({total_steps:,} batches in total, over all epochs)",
        imports=("import torch",),
        adapter="from eigencurve.adapters.torch import ScheduleLR",
        body="""\
optimizer = torch.optim.{name}(model.parameters(), lr=schedule.lr{momentum}, weight_decay={weight_decay!r})
scheduler = ScheduleLR(optimizer, schedule)
for inputs, targets in batches:
    loss = loss_fn(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()  # after every optimizer step, not after every epoch
""",
    ),
    "lightning": Template(
        defined_by_you="Module (your LightningModule), loader",
        imports=("import lightning", "import torch"),
        adapter="from eigencurve.adapters.lightning import optimizer_config",
        body="""\


class Scheduled(Module):
    def configure_optimizers(self):
        optimizer = torch.optim.{name}(self.parameters(), lr=schedule.lr{momentum}, weight_decay={weight_decay!r})
        return optimizer_config(optimizer, schedule)  # Lightning steps it after every optimizer step


trainer = lightning.Trainer(max_steps=schedule.total_steps)
trainer.fit(Scheduled(), loader)
""",
    ),
    "transformers": Template(
        defined_by_you="model, train_dataset",
        imports=("from transformers import Trainer, TrainingArguments",),
        adapter="from eigencurve.adapters.transformers import ScheduleCallback",
        body="""\
arguments = TrainingArguments(
    "output", max_steps=schedule.total_steps, learning_rate=schedule.lr, weight_decay={weight_decay!r},
    optim={transformers},
)
trainer = Trainer(model, arguments, train_dataset=train_dataset, callbacks=[ScheduleCallback(schedule)])
trainer.train()
""",
    ),
    "keras": Template(
        defined_by_you="model, loss, x, y, batch_size, epochs ({total_steps:,} updates in total)",
        imports=("import keras",),
        adapter="from eigencurve.adapters.keras import KerasSchedule",
        body="""\
optimizer = keras.optimizers.{name}(KerasSchedule(schedule){momentum}, weight_decay={weight_decay!r})
model.compile(optimizer=optimizer, loss=loss)
model.fit(x, y, batch_size=batch_size, epochs=epochs)
""",
    ),
    "optax": Template(
        defined_by_you="params, loss_fn(params, batch), batches ({total_steps:,} batches in total, over all epochs)",
        imports=("import jax", "import optax"),
        adapter="from eigencurve.adapters.optax import optax_schedule",
        body="""\
optimizer = {optax}
state = optimizer.init(params)


@jax.jit
def step(params, state, batch):
    gradients = jax.grad(loss_fn)(params, batch)
    updates, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, updates), state


for batch in batches:
    params, state = step(params, state, batch)
""",
    ),
}


# Names of the optimizers in PyTorch and Keras.
NAMES = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}


def snippet(framework: str, source: ScheduleSource) -> str:
    """Generate code that trains with a schedule, ready to paste.

    Args:
        framework: One of the keys of ``TEMPLATES``.
        source: The schedule and the code that creates it.
    """
    _check.choice("snippet", "framework", framework, tuple(TEMPLATES))
    template, needed = TEMPLATES[framework], source.imports()
    momentum = f", momentum={source.momentum!r}" if source.momentum else ""
    momentum += ", nesterov=True" if source.nesterov else ""
    numbers = {
        "total_steps": source.schedule.total_steps, "weight_decay": source.weight_decay, "momentum": momentum,
        "name": NAMES[source.optimizer], "optax": _optax(source, momentum), "transformers": _transformers(source),
    }  # fmt: skip
    standard = [line for line in needed if "eigencurve" not in line]
    own = [template.adapter, *(line for line in needed if "eigencurve" in line)]
    blocks = [
        [f"# Defined by you: {template.defined_by_you.format(**numbers)}"],
        [*standard, ""] if standard else [],
        [*template.imports, ""],
        ["import eigencurve as ec", *own, ""],
        source.statements(),
    ]
    return "\n".join(line for block in blocks for line in block) + "\n" + template.body.format(**numbers)


def _optax(source: ScheduleSource, momentum: str) -> str:
    """The optimizer in optax, where only AdamW has a weight decay of its own."""
    decay = repr(source.weight_decay)
    if source.optimizer == "adamw":
        return f"optax.adamw(optax_schedule(schedule), weight_decay={decay})"
    update = f"optax.{source.optimizer}(optax_schedule(schedule){momentum})"
    return f"optax.chain(\n    optax.add_decayed_weights({decay}), {update}\n)"


def _transformers(source: ScheduleSource) -> str:
    """The ``optim`` of TrainingArguments; options of SGD follow in ``optim_args``."""
    if source.optimizer == "adamw":
        return '"adamw_torch"'
    options = f', optim_args="momentum={source.momentum!r}' + (",nesterov=True" if source.nesterov else "") + '"'
    return f'"{source.optimizer}"' + (options if source.momentum else "")
