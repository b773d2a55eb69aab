"""A schedule as an optax schedule: a function of a traced step, for any JAX training loop."""

from __future__ import annotations

from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule, require_schedule
from eigencurve.schedules.segments import evaluate, segments_of

try:
    import jax
    import jax.numpy as jnp
    import optax
except ImportError as error:
    raise ImportError("eigencurve.adapters.optax needs optax and JAX: pip install eigencurve[optax]") from error


def optax_schedule(schedule: Schedule, scale: float = 1.0) -> optax.Schedule:
    r"""``schedule`` as optax wants it: a function of the update's number, 0 for the first.

    It runs inside ``jax.jit`` and ``jax.vmap`` and goes wherever optax takes a schedule:
    ``optax.sgd(optax_schedule(f))``, ``optax.inject_hyperparams``, ``optax.join_schedules``. The rate is float32 and
    within :math:`2^{-22}` of f(t), relative, at every one of a million steps or more; the first and the last step, the
    step after a jump and all of a step schedule are f(t) rounded.

    The mechanism is :mod:`eigencurve.schedules.segments`: the schedule is compiled here, once and in float64, to a
    table of cubic pieces, which is some kilobytes also for a hundred million steps. In float32 the formula itself
    would lose most of its digits near the end of a run, and a table of all those rates would put a constant of 400 MB
    into the compiled program.

    A step beyond the last keeps the last rate. One before the first gets the first, as in optax's own schedules:
    ``join_schedules`` evaluates also those whose time has not come.

    Args:
        schedule: any schedule of this package.
        scale: what all rates are multiplied by. For groups with rates of their own, give
            ``optax.multi_transform`` one optimizer a group, each with the same schedule and its own scale.

    Returns:
        A function from an integer, or an array of integers, to float32 rates.

    Raises:
        TypeError: something else than a schedule; or, when it is called, a step that is not an integer.

    >>> import eigencurve as ec
    >>> rate = optax_schedule(ec.cosine(total_steps=1_000_000, lr=0.1))
    >>> float(rate(500_000))
    0.05000000074505806
    """
    require_schedule("optax_schedule", schedule)
    segments = segments_of(schedule, _check.positive("optax_schedule", "scale", scale))
    compiled = jax.jit(lambda step: evaluate(segments, step, jnp))

    def rate(count: Any) -> jax.Array:
        if not jnp.issubdtype(jnp.result_type(count), jnp.integer):
            raise TypeError(_check.sentence("optax_schedule", "count", "an integer or an array of integers", count))
        result: jax.Array = compiled(count)
        return result

    return rate
