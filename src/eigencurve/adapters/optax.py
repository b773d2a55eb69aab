"""optax_schedule: a schedule as a traceable function of the step, for optax and any JAX training loop."""

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
    r"""Convert a schedule to an optax schedule, a function of the number of updates so far.

    The function can be traced by ``jax.jit`` and ``jax.vmap`` and works wherever optax takes a schedule:
    ``optax.sgd(optax_schedule(f))``, ``optax.inject_hyperparams``, ``optax.join_schedules``. Rates are float32 with a
    relative error of at most :math:`2^{-22}`, also for runs of a million steps and more. The first step, the last
    step, steps after a jump and all steps of a step schedule are exact up to rounding.

    The schedule is compiled once, in float64, to a table of cubic pieces (:mod:`eigencurve.schedules.segments`), which
    takes a few kilobytes even for a hundred million steps. In float32, the formula itself would lose most of its digits
    near the end of a run, and a table of all rates would add a constant of 400 MB to the compiled program.

    Steps beyond the last get the last rate. Negative steps get the first, as in optax's own schedules, because
    ``join_schedules`` also evaluates schedules before their start.

    Args:
        schedule: Any schedule of this package.
        scale: Factor on all rates. For parameter groups with different rates, pass ``optax.multi_transform`` one
            optimizer per group, each with the same schedule and its own scale.

    Returns:
        A function from an integer or an array of integers to float32 rates.

    Raises:
        TypeError: If ``schedule`` is not a schedule or, when the function is called, if the step is not an integer.

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
            _check.wrong_type("optax_schedule", "count", "an integer or an array of integers", count)
        result: jax.Array = compiled(count)
        return result

    return rate
