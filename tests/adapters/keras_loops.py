"""Keras training loops, run in a worker process with a given backend."""

import contextlib
import doctest
import runpy
import tempfile
import warnings
from pathlib import Path

import keras
import numpy as np

import eigencurve as ec
from eigencurve._check import ArgumentError
from eigencurve.adapters import keras as adapter
from eigencurve.adapters.keras import CheckLength, KerasSchedule, cooldown, extend


@keras.saving.register_keras_serializable(package="tests")
def output(_y, prediction):
    """A loss with slope one."""
    return prediction


class Loop:
    """One weight per group, with slope one and reset to zero before each update: its new value is minus the rate."""

    def __init__(self, model):
        self.model, self.seen = model, []

    @classmethod
    def fresh(cls, optimizer, num_groups=1):
        x = keras.Input((1,))
        weights = [keras.layers.Dense(1, use_bias=False, name=f"group{i}")(x) for i in range(num_groups)]
        model = keras.Model(x, keras.layers.add(weights) if num_groups > 1 else weights[0])
        model.compile(optimizer, loss=output)
        return cls(model)

    def run(self, num_steps, x=1.0):
        for _ in range(num_steps):
            for weight in self.model.trainable_variables:
                weight.assign(np.zeros((1, 1)))
            self.model.train_on_batch(np.full((1, 1), x), np.zeros((1, 1)))
            rates = [-float(weight.numpy()[0, 0]) for weight in self.model.trainable_variables]
            if rates[0] != 0:
                self.seen.append(rates)
        return self

    def reloaded(self):
        with tempfile.TemporaryDirectory() as folder:
            self.model.save(Path(folder) / "model.keras")
            return Loop(keras.models.load_model(Path(folder) / "model.keras"))

    @property
    def first(self):
        return [rates[0] for rates in self.seen]


def plain(schedule, **settings):
    return Loop.fresh(keras.optimizers.SGD(KerasSchedule(ec.schedule_from_dict(schedule)), **settings))


def backend():
    return keras.backend.backend()


def rates(schedule, num_steps):
    return plain(schedule).run(num_steps).first


def rates_resumed(schedule, num_steps, stop_at):
    before = plain(schedule, momentum=0.0).run(stop_at)
    return before.first + before.reloaded().run(num_steps - stop_at).first


def rates_accumulating(schedule, num_updates, accumulation):
    counted = KerasSchedule(ec.schedule_from_dict(schedule), gradient_accumulation_steps=accumulation)
    loop = Loop.fresh(keras.optimizers.SGD(counted, gradient_accumulation_steps=accumulation))
    half = num_updates // 2
    begun = loop.run(half * accumulation)
    return begun.first + begun.reloaded().run((num_updates - half) * accumulation).first


def multi_optimizer(schedule, ratios):
    f = ec.schedule_from_dict(schedule)
    optimizers = [keras.optimizers.SGD(KerasSchedule(f, scale=ratio)) for ratio in ratios]
    groups = keras.optimizers.OptimizerMap(optimizers[0])
    for i in range(1, len(ratios)):
        groups[f"group{i}/.*"] = optimizers[i]
    return keras.optimizers.MultiOptimizer(groups)


def rates_groups(schedule, num_steps, ratios):
    begun = Loop.fresh(multi_optimizer(schedule, ratios), len(ratios)).run(num_steps // 2)
    return begun.seen + begun.reloaded().run(num_steps - num_steps // 2).seen


def rates_skipping(schedule, num_steps, skipped):
    inner = keras.optimizers.SGD(KerasSchedule(ec.schedule_from_dict(schedule)))
    loop = Loop.fresh(keras.optimizers.LossScaleOptimizer(inner, initial_scale=2.0**8))
    for t in range(num_steps):
        loop.run(1, x=np.inf if t in skipped else 1.0)
    return loop.first


def extend_late(model, longer):
    """Extend a schedule that may have decayed already."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the rate jumps")
        extend(model, ec.schedule_from_dict(longer))


def rates_extended(schedule, longer, num_steps, at):
    before = plain(schedule).run(at)
    after = before.reloaded()
    extend_late(after.model, longer)
    return before.first + after.run(num_steps - at).first


def rates_extended_in_place(schedule, longer, num_steps, at):
    """Rates of a run extended after its train step was compiled, with a loss-scale optimizer."""
    inner = keras.optimizers.SGD(KerasSchedule(ec.schedule_from_dict(schedule)))
    loop = Loop.fresh(keras.optimizers.LossScaleOptimizer(inner, initial_scale=2.0**8)).run(at)
    extend_late(loop.model, longer)
    return loop.run(num_steps - at).first


def groups_extended_in_place(schedule, longer, num_steps, at, ratios):
    loop = Loop.fresh(multi_optimizer(schedule, ratios), len(ratios)).run(at)
    extend_late(loop.model, longer)
    return loop.run(num_steps - at).seen


def rates_cooled(schedule, num_steps, at, shape, ratios):
    """Rates of a run that is saved, loaded and cooled down at ``at``."""
    before = Loop.fresh(multi_optimizer(schedule, ratios), len(ratios)).run(at)
    after = before.reloaded()
    cooldown(after.model, num_steps=num_steps, shape=shape)
    return before.seen + after.run(num_steps).seen


def rates_rewarmed(schedule, longer, num_steps, at, rewarm, accumulation):
    counted = KerasSchedule(ec.schedule_from_dict(schedule), gradient_accumulation_steps=accumulation)
    loop = Loop.fresh(keras.optimizers.SGD(counted, gradient_accumulation_steps=accumulation)).run(at * accumulation)
    extend(loop.model, ec.schedule_from_dict(longer), rewarm=rewarm)
    return loop.run((num_steps - at) * accumulation).first


def length_warnings(schedule, num_batches, epochs, taken, accumulation):
    """Warnings of CheckLength in a fit after some steps."""
    counted = KerasSchedule(ec.schedule_from_dict(schedule), gradient_accumulation_steps=accumulation)
    steps = accumulation if accumulation > 1 else None
    loop = Loop.fresh(keras.optimizers.SGD(counted, gradient_accumulation_steps=steps)).run(taken * accumulation)
    x = np.ones((num_batches, 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loop.model.fit(x, x, batch_size=1, epochs=epochs, verbose=0, callbacks=[CheckLength()])
    return [str(warning.message) for warning in caught if "CheckLength" in str(warning.message)]


class Reading(keras.callbacks.Callback):
    """Reads the optimizer's rate before every batch, and records its iteration count afterwards."""

    def __init__(self, read):
        super().__init__()
        self.read, self.counts = read, []

    def on_train_batch_begin(self, *_args, **_names):
        self.read(float(self.model.optimizer.learning_rate))

    def on_train_batch_end(self, *_args, **_names):
        self.counts.append(int(self.model.optimizer.iterations))


def fitted_rates(schedule, num_steps):
    """Rates seen by a callback of model.fit, jitted if the backend supports it."""
    seen = []
    reading = Reading(seen.append)
    x = np.random.default_rng(0).normal(size=(num_steps, 3))
    model = keras.Sequential([keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(KerasSchedule(ec.schedule_from_dict(schedule))), loss="mse")
    model.fit(x, x[:, :1], batch_size=1, epochs=1, verbose=0, shuffle=False, callbacks=[reading])
    return {"seen": seen, "iterations": reading.counts}


def values(schedule, steps):
    """Rates at an array of steps, traced if the backend compiles."""
    found = KerasSchedule(ec.schedule_from_dict(schedule))
    call = found
    if keras.backend.backend() == "jax":
        import jax

        call = jax.jit(found)
    result = call(keras.ops.array(steps, dtype="int32"))
    assert keras.backend.standardize_dtype(result.dtype) == "float32"
    return np.asarray(keras.ops.convert_to_numpy(result), dtype=np.float64).tolist()


def save(schedule, num_steps, path):
    """Save a model of one weight after some updates, with a built-in loss."""
    loop = Loop.fresh(keras.optimizers.SGD(KerasSchedule(ec.schedule_from_dict(schedule)))).run(num_steps)
    loop.model.compile(loop.model.optimizer, loss="mae")
    loop.model.save(path)


def restored_rates(schedule, num_steps, stop_at, folder):
    """Rates of an interrupted run that BackupAndRestore restarts."""
    seen, stopped = [], []

    def read(rate):
        if len(seen) == stop_at and not stopped:
            stopped.append(rate)
            raise KeyboardInterrupt
        seen.append(rate)

    x = np.random.default_rng(0).normal(size=(num_steps, 3))
    for _ in range(2):
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(KerasSchedule(ec.schedule_from_dict(schedule))), loss="mse")
        callbacks = [keras.callbacks.BackupAndRestore(folder, save_freq=1), Reading(read)]
        with contextlib.suppress(KeyboardInterrupt):
            model.fit(x, x[:, :1], batch_size=1, epochs=1, verbose=0, shuffle=False, callbacks=callbacks)
    return seen


def hessian():
    """Dense Hessian of a Keras model, by the recipe in docs/adapters.md for this backend."""
    import torch

    source = np.random.default_rng(0)
    x, y = source.normal(size=(16, 3)).astype(np.float32), source.integers(0, 2, 16)
    layers = [keras.layers.Dense(4, activation="tanh"), keras.layers.BatchNormalization(), keras.layers.Dropout(0.5)]
    model = keras.Sequential([keras.Input((3,)), *layers, keras.layers.Dense(2)])
    for weight in model.trainable_variables:
        weight.assign(source.normal(size=weight.shape))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if keras.backend.backend() == "torch":
        from eigencurve.hessian import HessianOperator

        pair = (torch.from_numpy(x), torch.from_numpy(y))
        operator = HessianOperator(model, lambda outputs, labels: loss(labels, outputs), pair)
    else:
        from eigencurve.adapters.jax import hessian_operator

        fixed = [v.value for v in model.non_trainable_variables]
        operator = hessian_operator(
            lambda params, batch: loss(batch[1], model.stateless_call(params, fixed, batch[0])[0]),
            [v.value for v in model.trainable_variables],
            (x, y),
        )
    return torch.stack([operator(column) for column in torch.eye(operator.dim)]).tolist()


def run_example(path):
    names = runpy.run_path(path)
    steps = int(names["model"].optimizer.iterations)
    return {"loss": names["loss"], "steps": steps, "total_steps": names["total_steps"]}


def doctests():
    return doctest.testmod(adapter)._asdict()


def refused(case):
    """Type, function and argument of the error that a bad call raises."""
    f, g = ec.cosine(10, 0.5), ec.cosine(4, 0.5)
    running = Loop.fresh(keras.optimizers.SGD(KerasSchedule(f))).run(4).model
    bare = Loop.fresh(keras.optimizers.SGD(0.1)).model
    calls = {
        "schedule": lambda: KerasSchedule(0.1),
        "scale": lambda: KerasSchedule(f, scale=-1.0),
        "accumulation": lambda: KerasSchedule(f, gradient_accumulation_steps=0),
        "float step": lambda: KerasSchedule(f)(1.5),
        "too short": lambda: extend(running, g),
        "no schedule": lambda: extend(bare, f),
        "not compiled": lambda: extend(keras.Sequential([keras.layers.Dense(1)]), f),
        "past": lambda: cooldown(running, 3, num_steps=2),
        "cool nothing": lambda: cooldown(bare, num_steps=2),
        "extend a number": lambda: extend(running, 0.1),
        "foreign config": lambda: KerasSchedule.from_config({"schedule": {"kind": "sine"}}),
    }
    try:
        calls[case]()
    except ArgumentError as error:
        return [type(error).__name__, error.function, error.argument]
    return []
