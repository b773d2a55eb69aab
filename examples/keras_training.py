"""Keras: train with an Eigencurve schedule, save the model halfway, load it and continue.

Choose a backend with ``KERAS_BACKEND=jax python examples/keras_training.py``.
"""

import tempfile
from pathlib import Path

import keras
import numpy as np

import eigencurve as ec
from eigencurve.adapters.keras import KerasSchedule

source = np.random.default_rng(0)
x = source.normal(size=(256, 8))
y = (x[:, 0] * x[:, 1] > 0).astype(int)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(32, activation="tanh"), keras.layers.Dense(2)])

epochs, batch_size = 30, 32
total_steps = epochs * len(x) // batch_size
schedule = ec.eigencurve(ec.PowerLaw(alpha=1.5, mu=1e-3, L=2.0), total_steps, lr=0.5, min_lr=1e-3)
model.compile(
    keras.optimizers.SGD(KerasSchedule(schedule), momentum=0.9),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
model.fit(x, y, batch_size, epochs=epochs // 2, verbose=0)
with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder) / "model.keras")
    model = keras.models.load_model(Path(folder) / "model.keras")  # with the schedule and the step
model.fit(x, y, batch_size, epochs=epochs // 2, verbose=0)
loss = model.evaluate(x, y, verbose=0)
print(schedule.preview())
print(f"loss {loss:.4f} after {int(model.optimizer.iterations)} steps")
