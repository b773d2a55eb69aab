"""JAX and optax: measure the curvature of the loss, then train with the schedule made from it."""

import jax
import jax.numpy as jnp
import optax

from eigencurve.adapters.jax import jax_schedule
from eigencurve.adapters.optax import optax_schedule

keys = jax.random.split(jax.random.key(0), 3)
x = jax.random.normal(keys[0], (256, 8))
y = (x[:, 0] * x[:, 1] > 0).astype(int)
params = {"in": jax.random.normal(keys[1], (8, 32)) / 3, "out": jax.random.normal(keys[2], (32, 2)) / 6}


def loss_fn(params, batch):
    """Mean loss of a batch."""
    x, y = batch
    logits = jnp.tanh(x @ params["in"]) @ params["out"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


schedule, estimate = jax_schedule(loss_fn, params, (x, y), total_steps=100, lr=0.3, weight_decay=1e-3, num_products=40)
optimizer = optax.chain(optax.add_decayed_weights(1e-3), optax.sgd(optax_schedule(schedule), momentum=0.9))


@jax.jit
def update(params, state):
    """One training step."""
    loss, gradient = jax.value_and_grad(loss_fn)(params, (x, y))
    updates, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, updates), state, loss


state = optimizer.init(params)
for _ in range(schedule.total_steps):
    params, state, loss = update(params, state)
print(estimate)
print(f"loss {loss:.4f} at learning rate {schedule(schedule.total_steps - 1):.2e}")
