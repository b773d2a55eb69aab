"""A jitted JAX loop with optax; files contain the optimizer's state as arrays and the schedule as JSON."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402
from tests.adapters.contract import Driver  # noqa: E402

import eigencurve as ec  # noqa: E402
from eigencurve.adapters.optax import optax_schedule  # noqa: E402


class Loop:
    """One weight per group, with slope one and reset to zero before each update: its new value is minus the rate."""

    def __init__(self, optimizer, num_groups=1):
        self.weights = {str(i): jnp.zeros(()) for i in range(num_groups)}
        self.state = optimizer.init(self.weights)
        self.seen = []

        @jax.jit
        def update(state, slope):
            weights = jax.tree.map(jnp.zeros_like, self.weights)
            gradient = jax.grad(lambda w: slope * sum(w.values()))(weights)
            updates, state = optimizer.update(gradient, state, weights)
            return optax.apply_updates(weights, updates), state

        self._update = update

    def run(self, num_steps, slope=1.0):
        for _ in range(num_steps):
            weights, self.state = self._update(self.state, slope)
            if weights["0"] != 0:
                self.seen.append([-float(weight) for weight in weights.values()])
        return self

    def save(self, path):
        np.savez(path, *jax.tree.leaves(self.state))

    def load(self, path):
        with np.load(path) as file:
            leaves = [jnp.asarray(file[name]) for name in file.files]
        self.state = jax.tree.unflatten(jax.tree.structure(self.state), leaves)
        return self


def first(loop):
    return [rates[0] for rates in loop.seen]


class OptaxDriver(Driver):
    name = "optax"
    rtol = 2.0**-22
    skip = "not counted"

    def rates(self, schedule, num_steps):
        return first(Loop(optax.sgd(optax_schedule(schedule))).run(num_steps))

    def rates_resumed(self, schedule, num_steps, stop_at):
        return self.halves(schedule, stop_at, num_steps, lambda saved: saved)

    def rates_accumulating(self, schedule, num_updates, accumulation):
        optimizer = optax.MultiSteps(optax.sgd(optax_schedule(schedule)), every_k_schedule=accumulation)
        return first(Loop(optimizer).run(num_updates * accumulation))

    def rates_groups(self, schedule, num_steps, ratios):
        labels = {str(i): str(i) for i in range(len(ratios))}
        groups = {str(i): optax.sgd(optax_schedule(schedule, scale=ratio)) for i, ratio in enumerate(ratios)}
        return Loop(optax.multi_transform(groups, labels), len(ratios)).run(num_steps).seen

    def rates_skipping(self, schedule, num_steps, skipped):
        loop = Loop(optax.apply_if_finite(optax.sgd(optax_schedule(schedule)), max_consecutive_errors=3))
        for t in range(num_steps):
            loop.run(1, slope=float("inf") if t in skipped else 1.0)
        return first(loop)

    def rates_extended(self, schedule, longer, num_steps, at):
        return self.halves(schedule, at, num_steps, lambda _saved: longer)

    def halves(self, schedule, stop_at, num_steps, choose):
        before = Loop(optax.sgd(optax_schedule(schedule))).run(stop_at)
        with tempfile.TemporaryDirectory() as folder:
            before.save(Path(folder) / "state.npz")
            (Path(folder) / "schedule.json").write_text(json.dumps(schedule.to_dict()))
            saved = ec.schedule_from_dict(json.loads((Path(folder) / "schedule.json").read_text()))
            after = Loop(optax.sgd(optax_schedule(choose(saved)))).load(Path(folder) / "state.npz")
        return first(before) + first(after.run(num_steps - stop_at))


DRIVER = OptaxDriver()
