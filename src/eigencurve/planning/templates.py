"""Templates of generated training code, one pair for each framework."""

from __future__ import annotations

from dataclasses import dataclass


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


BATCHES = "batches ({total_steps:,} batches {size}in total, over all epochs)"
TORCH_LOOP = """\
scheduler = ScheduleLR(optimizer, schedule)
for inputs, targets in batches:
    loss = loss_fn(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()  # after every optimizer step, not after every epoch
"""
LIGHTNING_FIT = """\


trainer = lightning.Trainer(max_steps=schedule.total_steps)
trainer.fit(Scheduled(), loader)
"""
KERAS_FIT = """\
model.compile(optimizer=optimizer, loss=loss)
model.fit(x, y, batch_size={batch_size}, epochs=epochs)
"""
OPTAX_LOOP = """\
state = optimizer.init(params)


@jax.jit
def step(params, state, batch):
    gradients = jax.grad(loss_fn)(params, batch)
    updates, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, updates), state


for batch in batches:
    params, state = step(params, state, batch)
"""
IN_TORCH = "from eigencurve.adapters.torch import ScheduleLR"
IN_LIGHTNING = "from eigencurve.adapters.lightning import optimizer_config"
IN_TRANSFORMERS = "from eigencurve.adapters.transformers import ScheduleCallback"
IN_KERAS = "from eigencurve.adapters.keras import KerasSchedule"
IN_OPTAX = "from eigencurve.adapters.optax import optax_schedule"

# Code that makes the optimizer.
TEMPLATES = {
    "torch": Template(
        f"model, loss_fn, {BATCHES}",
        ("import torch",),
        IN_TORCH,
        "optimizer = {torch_of_model}\n" + TORCH_LOOP,
    ),
    "lightning": Template(
        "Module (your LightningModule), loader{of_size}",
        ("import lightning", "import torch"),
        IN_LIGHTNING,
        """\


class Scheduled(Module):
    def configure_optimizers(self):
        optimizer = {torch_of_self}
        return optimizer_config(optimizer, schedule)  # Lightning steps it after every optimizer step
"""
        + LIGHTNING_FIT,
    ),
    "transformers": Template(
        "model, train_dataset",
        ("from transformers import Trainer, TrainingArguments",),
        IN_TRANSFORMERS,
        """\
arguments = TrainingArguments(
    "output", max_steps=schedule.total_steps, learning_rate=schedule.lr{per_device}, weight_decay={weight_decay},
    optim={transformers},
)
trainer = Trainer(model, arguments, train_dataset=train_dataset, callbacks=[ScheduleCallback(schedule)])
trainer.train()
""",
    ),
    "keras": Template(
        "model, loss, x, y, {ask_size}epochs ({total_steps:,} updates in total)",
        ("import keras",),
        IN_KERAS,
        "{keras_decay}optimizer = {keras}\n" + KERAS_FIT,
    ),
    "optax": Template(
        f"params, loss_fn(params, batch), {BATCHES}",
        ("import jax", "import optax"),
        IN_OPTAX,
        "optimizer = {optax}\n" + OPTAX_LOOP,
    ),
}
# Code that leaves the optimizer to the reader and sets nothing but its learning rate.
YOUR_OPTIMIZER = {
    "torch": Template(f"model, loss_fn, optimizer, {BATCHES}", (), IN_TORCH, TORCH_LOOP),
    "lightning": Template(
        "Module (your LightningModule, whose configure_optimizers returns an optimizer), loader{of_size}",
        ("import lightning",),
        IN_LIGHTNING,
        """\


class Scheduled(Module):
    def configure_optimizers(self):
        return optimizer_config(super().configure_optimizers(), schedule)  # steps after every optimizer step
"""
        + LIGHTNING_FIT,
    ),
    "transformers": Template(
        "model, train_dataset, arguments (your TrainingArguments, with {total_steps:,} steps{per_device_words})",
        ("from transformers import Trainer",),
        IN_TRANSFORMERS,
        """\
trainer = Trainer(model, arguments, train_dataset=train_dataset, callbacks=[ScheduleCallback(schedule)])
trainer.train()
""",
    ),
    "keras": Template(
        "model, optimizer, loss, x, y, {ask_size}epochs ({total_steps:,} updates in total)",
        (),
        IN_KERAS,
        "optimizer.learning_rate = KerasSchedule(schedule)\n" + KERAS_FIT,
    ),
    "optax": Template(
        "params, loss_fn(params, batch), optimizer_at (makes your optimizer from a learning rate), " + BATCHES,
        ("import jax", "import optax"),
        IN_OPTAX,
        "optimizer = optimizer_at(optax_schedule(schedule))\n" + OPTAX_LOOP,
    ),
}
# TrainingArguments has no Adam with the weight decay in the gradient.
ADAM_IN_TRANSFORMERS = Template(
    "model, train_dataset",
    ("import torch", "from transformers import Trainer, TrainingArguments"),
    IN_TRANSFORMERS,
    """\
arguments = TrainingArguments("output", max_steps=schedule.total_steps, learning_rate=schedule.lr{per_device})
optimizer = {torch_of_model}
trainer = Trainer(
    model, arguments, train_dataset=train_dataset, optimizers=(optimizer, None),
    callbacks=[ScheduleCallback(schedule)],
)
trainer.train()
""",
)
